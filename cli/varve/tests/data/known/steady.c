// Fills an archive that it never reads again, then uses a table at random, from a mark on. With `first`, the table is made first.
// `steady ARCHIVE_MIB TABLE_MIB OPS [first]`
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static uint64_t *make_archive(size_t bytes) { return memset(malloc(bytes), 1, bytes); }

__attribute__((noinline)) static uint64_t *make_table(size_t bytes) { return memset(malloc(bytes), 1, bytes); }

int main(int count, char **words) {
    size_t archive_bytes = (size_t)atoi(words[1]) << 20, table_bytes = (size_t)atoi(words[2]) << 20;
    uint64_t *table = count > 4 ? make_table(table_bytes) : NULL;
    uint64_t *archive = make_archive(archive_bytes);
    if (!table)
        table = make_table(table_bytes);
    uint64_t x = 88172645463325252ull, sum = 0;
    access("/varve/record/begin", 0);
    for (long i = 0; i < atol(words[3]); i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        sum += table[x % (table_bytes / 8)]++;
    }
    printf("%lu %lu\n", sum, archive[archive_bytes / 16]);
    return count < 4;
}
