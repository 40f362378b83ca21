// Two arrays of one size with equally many accesses: one is streamed, the other chased. `two_arrays MIB OPS`
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static uint64_t *make_streamed(size_t words) {
    uint64_t *at = malloc(words * 8);
    for (size_t i = 0; i < words; i++)
        at[i] = i;
    return at;
}

// Each word has the number of the next one, in one circle through all lines.
__attribute__((noinline)) static uint64_t *make_chased(size_t words) {
    uint64_t *at = malloc(words * 8);
    for (size_t i = 0; i < words; i++)
        at[i] = (i + words / 2 * 8 / 8 + 8009) % words;
    return at;
}

int main(int count, char **words) {
    size_t n = (size_t)atoi(words[1]) << 17;
    long ops = atol(words[2]);
    uint64_t *streamed = make_streamed(n), *chased = make_chased(n), sum = 0, at = 0;
    for (long i = 0; i < ops; i++)
        sum += streamed[(size_t)i * 8 % n];
    for (long i = 0; i < ops; i++)
        at = chased[at];
    printf("%lu %lu\n", sum, at);
    return count != 3;
}
