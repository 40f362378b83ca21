// Programs of the comparison of engines: `program SIZE ROUNDS` does the same work in each round, says on standard error how long the round took,
// and prints at the end what it computed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// One round's work; what it computed.
static uint64_t work(int size);

// Numbers that are the same everywhere.
static inline uint32_t next(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s SIZE ROUNDS\n", argv[0]);
        return 2;
    }
    uint64_t sum = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        double begin = now_ms();
        sum = sum * 31 + work(atoi(argv[1]));
        fprintf(stderr, "round: %.3f ms\n", now_ms() - begin);
    }
    printf("checksum %016llx\n", (unsigned long long)sum);
    return 0;
}
