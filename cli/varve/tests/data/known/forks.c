// A parent fills a table and an archive, one of them shared if asked, and children use the table. `forks shared|segment|inherited|written`
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, TABLE = 24 * MIB, ARCHIVE = 40 * MIB, CHILDREN = 4 };

static void *filled(void *at, size_t bytes) {
    memset(at, 1, bytes);
    return at;
}

__attribute__((noinline)) static uint64_t *make_table(const char *how) {
    int flags = MAP_ANONYMOUS | MAP_SHARED;
    if (!strcmp(how, "shared"))
        return filled(mmap(0, TABLE, PROT_READ | PROT_WRITE, flags, -1, 0), TABLE);
    if (!strcmp(how, "segment")) {
        int segment = shmget(IPC_PRIVATE, TABLE, IPC_CREAT | 0600);
        void *at = shmat(segment, 0, 0);
        shmctl(segment, IPC_RMID, 0);
        return filled(at, TABLE);
    }
    return filled(malloc(TABLE), TABLE);
}

__attribute__((noinline)) static char *make_archive(void) { return filled(malloc(ARCHIVE), ARCHIVE); }

static void use(uint64_t *table, int child, int writes) {
    uint64_t x = 88172645463325252ull + child, sum = 0;
    for (int i = 0; i < 200000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint64_t *word = &table[x % (TABLE / 8)];
        sum += writes ? (*word)++ : *word;
    }
    _exit(sum == 42);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "inherited";
    uint64_t *table = make_table(how);
    char *archive = make_archive();
    for (int child = 0; child < CHILDREN; child++)
        if (!fork())
            use(table, child, !strcmp(how, "written"));
    while (wait(0) > 0)
        ;
    return archive[5] != 1;
}
