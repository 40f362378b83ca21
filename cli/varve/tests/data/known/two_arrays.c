// Two arrays of one size, with equally many accesses from a mark on: one is streamed, the other chased. `two_arrays MIB OPS`, with
// a power of two of MiB
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct line {
    uint64_t next, rest[7];
};

__attribute__((noinline)) static struct line *make_streamed(size_t lines) {
    struct line *at = malloc(lines * sizeof *at);
    for (size_t i = 0; i < lines; i++)
        at[i].next = i;
    return at;
}

// One circle through all lines: a linear congruence of full period.
__attribute__((noinline)) static struct line *make_chased(size_t lines) {
    struct line *at = malloc(lines * sizeof *at);
    for (size_t i = 0; i < lines; i++)
        at[i].next = (i * 1664525 + 1013904223) % lines;
    return at;
}

int main(int count, char **words) {
    size_t lines = (size_t)atoi(words[1]) << 14;
    long ops = atol(words[2]);
    struct line *streamed = make_streamed(lines), *chased = make_chased(lines);
    uint64_t sum = 0, at = 0;
    access("/varve/record/begin", 0);
    for (long i = 0; i < ops; i++)
        sum += streamed[i % lines].next;
    for (long i = 0; i < ops; i++)
        at = chased[at].next;
    printf("%lu %lu\n", sum, at);
    return count != 3;
}
