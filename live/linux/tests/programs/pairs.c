// What malloc and free cost, in ns, by how the allocation site is found: in pairs, and each for itself. For bench/live-malloc.
//
//   pairs PAIRS [KIND]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")
#define CALLS(name, callee)          \
    APART void *name(size_t size) {  \
        void *p = callee(size);      \
        KEEP(p);                     \
        return p;                    \
    }

CALLS(nobody, malloc)
CALLS(direct, malloc)
CALLS(xmalloc, malloc)
CALLS(wrapped, xmalloc)
CALLS(wrapped_cold, xmalloc)
CALLS(inner, malloc)
CALLS(middle, inner)
CALLS(outer, middle)
CALLS(deep, outer)
CALLS(deep_cold, outer)

static const struct kind { const char *name; void *(*make)(size_t); } kinds[] = {
    {"nobody", nobody}, {"direct", direct}, {"wrapped", wrapped}, {"deep", deep}};

#define BATCH 512

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double least(double a, double b) { return a < b ? a : b; }

int main(int argc, char **argv) {
    long pairs = argc > 1 ? atol(argv[1]) : 1000000;
    if (argc > 3) deep_cold(1), wrapped_cold(1);
    for (int k = 0; k < 4; k++) { // one of each is kept, as in programs that use what they ask for
        void *kept = kinds[k].make(64);
        KEEP(kept);
        if (argc > 2 && strcmp(argv[2], kinds[k].name)) continue;
        void *(*make)(size_t) = kinds[k].make;
        double pair = 1e9, taken[2] = {1e9, 1e9};
        for (int round = 0; round < 5; round++) {
            double from = now();
            for (long i = 0; i < pairs; i++) free(make(64));
            pair = least(pair, (now() - from) / pairs);
            double sums[2] = {0, 0};
            for (long batch = 0; batch < pairs / BATCH; batch++) {
                void *blocks[BATCH];
                double begun = now();
                for (int i = 0; i < BATCH; i++) blocks[i] = make(64);
                double full = now();
                for (int i = 0; i < BATCH; i++) free(blocks[i]);
                sums[0] += full - begun, sums[1] += now() - full;
            }
            for (int i = 0; i < 2; i++) taken[i] = least(taken[i], sums[i] / (pairs / BATCH * BATCH));
        }
        printf("%-8s %6.2f ns a pair, malloc %6.2f, free %6.2f\n", kinds[k].name, pair, taken[0], taken[1]);
    }
    return 0;
}
