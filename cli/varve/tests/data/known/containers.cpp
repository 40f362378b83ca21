// A service with an archive and a log that it only writes, and sessions that it looks up at random: `containers LOG_ENTRIES SESSIONS OPS`
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

struct session {
    uint64_t id, count;
    char rest[48];
};

static std::vector<uint64_t> archive;
static std::vector<std::string> entries;
static std::unordered_map<uint64_t, session> sessions;

__attribute__((noinline)) static void fill_archive(size_t words) { archive.assign(words, 1); }

__attribute__((noinline)) static void log_entry(long at) {
    entries.push_back("entry " + std::to_string(at) + " of the log, which is never read again");
}

__attribute__((noinline)) static void open_session(uint64_t key, uint64_t id) { sessions[key] = session{id, 0, {}}; }

int main(int count, char **words) {
    long logged = atol(words[1]), opened = atol(words[2]), ops = atol(words[3]);
    fill_archive(3 << 20);
    // Entries of the log lie between sessions.
    for (long at = 0; at < opened || at < logged; at++) {
        if (at < logged)
            log_entry(at);
        if (at < opened)
            open_session(at * 2654435761u, at);
    }
    uint64_t x = 88172645463325252ull, sum = 0;
    for (long at = 0; at < ops; at++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        sum += sessions.find(x % opened * 2654435761u)->second.count++;
    }
    printf("%lu %zu %zu\n", sum, archive.size(), entries.size());
    _Exit(count != 4);
}
