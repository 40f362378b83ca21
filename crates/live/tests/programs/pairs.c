// What a pair of malloc and free costs, in ns, by how the allocation site is found. For bench/live-malloc.
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

int main(int argc, char **argv) {
    long pairs = argc > 1 ? atol(argv[1]) : 1000000;
    if (argc > 3) deep_cold(1), wrapped_cold(1);
    for (int k = 0; k < 4; k++) { // one of each is kept, as in programs that use what they ask for
        void *kept = kinds[k].make(64);
        KEEP(kept);
        if (argc > 2 && strcmp(argv[2], kinds[k].name)) continue;
        void *(*make)(size_t) = kinds[k].make;
        double best = 1e9;
        for (int round = 0; round < 5; round++) {
            struct timespec a, b;
            clock_gettime(CLOCK_MONOTONIC, &a);
            for (long i = 0; i < pairs; i++) free(make(64));
            clock_gettime(CLOCK_MONOTONIC, &b);
            double ns = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / pairs;
            if (ns < best) best = ns;
        }
        printf("%-8s %6.2f ns a pair\n", kinds[k].name, best);
    }
    return 0;
}
