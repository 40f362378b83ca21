// Programs that fill memory, each as one would write it: `kernels NAME SIZE`. SIZE is about what it takes, in MiB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

static uint64_t state = 88172645463325252ull;

static uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// Few are asked for often: the smaller of three draws.
static uint64_t skewed(uint64_t n) { return std::min({next() % n, next() % n, next() % n}); }

struct Graph {
    std::vector<uint64_t> first;
    std::vector<uint32_t> edges;
};

static Graph graph(uint32_t nodes, uint32_t degree) {
    Graph g;
    g.first.resize(nodes + 1);
    g.edges.resize(uint64_t(nodes) * degree);
    for (uint32_t node = 0; node <= nodes; node++) g.first[node] = uint64_t(node) * degree;
    for (auto &edge : g.edges) edge = uint32_t(skewed(nodes));
    return g;
}

static void bfs(size_t mib) {
    uint32_t nodes = mib * 12000;
    Graph g = graph(nodes, 16);
    std::vector<int> level(nodes, -1);
    std::vector<uint32_t> now{0}, then;
    level[0] = 0;
    uint64_t seen = 0;
    for (int depth = 1; !now.empty(); depth++) {
        then.clear();
        for (uint32_t node : now)
            for (uint64_t e = g.first[node]; e < g.first[node + 1]; e++)
                if (level[g.edges[e]] < 0) level[g.edges[e]] = depth, then.push_back(g.edges[e]);
        seen += now.size();
        now.swap(then);
    }
    printf("%lu nodes reached\n", seen);
}

static void pagerank(size_t mib) {
    uint32_t nodes = mib * 10000;
    Graph g = graph(nodes, 16);
    std::vector<double> rank(nodes, 1.0 / nodes), sum(nodes);
    for (int turn = 0; turn < 2; turn++) {
        std::fill(sum.begin(), sum.end(), 0.15 / nodes);
        for (uint32_t node = 0; node < nodes; node++) {
            double part = 0.85 * rank[node] / 16;
            for (uint64_t e = g.first[node]; e < g.first[node + 1]; e++) sum[g.edges[e]] += part;
        }
        rank.swap(sum);
    }
    printf("%g\n", rank[0]);
}

// Conjugate gradients on a sparse symmetric matrix with a strong diagonal.
static void cg(size_t mib) {
    uint32_t n = mib * 5000;
    std::vector<uint32_t> column;
    std::vector<double> value;
    column.reserve(uint64_t(n) * 12);
    value.reserve(uint64_t(n) * 12);
    for (uint32_t row = 0; row < n; row++)
        for (int k = 0; k < 12; k++) {
            column.push_back(k ? uint32_t((row + n + (k % 2 ? 1 : -1) * (next() % 50000 % n)) % n) : row);
            value.push_back(k ? -0.05 : 4.0);
        }
    std::vector<double> x(n), r(n, 1.0), p(n, 1.0), q(n);
    double rr = n;
    for (int turn = 0; turn < 3; turn++) {
        double pq = 0;
        for (uint32_t row = 0; row < n; row++) {
            double sum = 0;
            for (uint64_t k = uint64_t(row) * 12; k < uint64_t(row + 1) * 12; k++) sum += value[k] * p[column[k]];
            q[row] = sum;
            pq += p[row] * sum;
        }
        double alpha = rr / pq, now = 0;
        for (uint32_t i = 0; i < n; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i], now += r[i] * r[i];
        for (uint32_t i = 0; i < n; i++) p[i] = r[i] + now / rr * p[i];
        rr = now;
    }
    printf("%g\n", rr);
}

// A large table is read once, and each row looks into the hash table of a small one.
static void join(size_t mib) {
    struct Row {
        uint64_t key, payload[3];
    };
    std::vector<Row> large(mib * 26000);
    for (auto &row : large) row.key = next() % (mib * 2500);
    std::unordered_map<uint64_t, uint64_t> small;
    for (uint64_t key = 0; key < mib * 2500; key++) small[key] = next();
    uint64_t sum = 0;
    for (int turn = 0; turn < 2; turn++)
        for (auto &row : large) sum += small[row.key] + row.payload[0];
    printf("%lu\n", sum);
}

// An index with records beside it, as in YCSB B: 95 % reads, a few keys often.
static void btree(size_t mib) {
    std::map<uint64_t, std::string *> index;
    uint64_t records = mib * 4000;
    for (uint64_t key = 0; key < records; key++) index[key * 7919 % records] = new std::string(170, 'x');
    uint64_t sum = 0;
    for (uint64_t request = 0; request < 150000; request++) {
        auto found = index.find(skewed(records));
        if (found == index.end()) continue;
        if (request % 20) sum += (*found->second)[request % 170];
        else (*found->second)[request % 170] = 'y';
    }
    printf("%lu\n", sum);
}

int main(int count, char **words) {
    std::string name = count > 2 ? words[1] : "";
    size_t mib = count > 2 ? strtoul(words[2], nullptr, 10) : 0;
    const std::pair<const char *, void (*)(size_t)> all[] = {
        {"bfs", bfs}, {"pagerank", pagerank}, {"cg", cg}, {"join", join}, {"btree", btree}};
    for (auto [known, run] : all)
        if (name == known && mib) return run(mib), 0;
    fprintf(stderr, "kernels: write kernels bfs|pagerank|cg|join|btree MIB\n");
    return 2;
}
