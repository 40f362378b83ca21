/* Everything that a program may do with its memory and that a preloaded library must not disturb.
   Prints the name of each step that fails; ends with 0 when all is well. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)
static int failures;
static void expect(int ok, const char *what) {
    if (!ok) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}
static int all(const unsigned char *p, size_t n, int value) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) return 0;
    return 1;
}
static unsigned char zeroed[8 * MIB]; /* .bss */

static void small_things(void) {
    free(NULL);
    void *none = malloc(0);
    expect(none != NULL, "malloc(0) gives a pointer");
    free(none);
    errno = 0;
    expect(malloc(SIZE_MAX - 100) == NULL && errno == ENOMEM, "an impossible malloc says ENOMEM");
    errno = 0;
    expect(calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM, "an overflowing calloc says ENOMEM");
    errno = 0;
    expect(reallocarray(NULL, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM, "an overflowing reallocarray says ENOMEM");
    void *p = (void *)1;
    expect(posix_memalign(&p, 3, 8 * MIB) == EINVAL && p == (void *)1, "posix_memalign refuses a bad alignment");
    errno = 77;
    void *big = malloc(4 * MIB);
    expect(errno == 77, "a large malloc leaves errno alone");
    free(big);
    expect(errno == 77, "a large free leaves errno alone");
    errno = 0;
    expect(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL,
           "mmap of nothing says EINVAL");
    errno = 0;
    expect(munmap((void *)1, 4096) == -1 && errno == EINVAL, "munmap of a bad address says EINVAL");
}

static void large_blocks(void) {
    unsigned char *p = calloc(3, 2 * MIB);
    expect(all(p, 6 * MIB, 0), "calloc gives zeroes");
    expect(malloc_usable_size(p) >= 6 * MIB, "the usable size covers the block");
    memset(p, 7, 6 * MIB);
    p = realloc(p, 11 * MIB + 5);
    expect(all(p, 6 * MIB, 7), "growing keeps the content");
    memset(p, 8, 11 * MIB + 5);
    p = realloc(p, 5 * MIB);
    expect(all(p, 5 * MIB, 8), "shrinking keeps the content");
    p = realloc(p, 100);
    expect(all(p, 100, 8), "shrinking to a small block keeps the content");
    p = realloc(p, 9 * MIB);
    expect(all(p, 100, 8), "growing from a small block keeps the content");
    free(p);
    for (size_t align = 16; align <= 4 * MIB; align *= 4) {
        void *q = NULL;
        expect(posix_memalign(&q, align, 3 * MIB) == 0 && (uintptr_t)q % align == 0, "posix_memalign aligns");
        free(q);
        q = aligned_alloc(align, 4 * MIB);
        expect((uintptr_t)q % align == 0, "aligned_alloc aligns");
        free(q);
    }
    /* A block that grows in small steps. */
    char *s = NULL;
    for (size_t n = 1; n < 6 * MIB; n += 70001) {
        s = realloc(s, n);
        s[n - 1] = (char)n;
    }
    free(s);
}

static void mappings(void) {
    size_t len = 8 * MIB;
    unsigned char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(all(p, len, 0), "a mapping is zeroed");
    memset(p, 1, len);
    expect(munmap(p + 2 * MIB, MIB) == 0, "a hole can be cut");
    expect(all(p, 2 * MIB, 1) && all(p + 3 * MIB, 5 * MIB, 1), "both sides of the hole stay");
    unsigned char *hole = mmap(p + 2 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    expect(hole == p + 2 * MIB && all(hole, MIB, 0), "MAP_FIXED fills the hole");
    expect(mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p && all(p, MIB, 0),
           "MAP_FIXED replaces");
    errno = 0;
    expect(mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED
               && errno == EEXIST,
           "MAP_FIXED_NOREPLACE does not replace");
    expect(madvise(p + 4 * MIB, MIB, MADV_DONTNEED) == 0 && all(p + 4 * MIB, MIB, 0), "MADV_DONTNEED drops");
    expect(mprotect(p + 5 * MIB, 4096, PROT_NONE) == 0, "a guard page can be made");
    expect(munmap(p, len) == 0, "the mapping goes");

    unsigned char *q = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(q, 3, 4 * MIB);
    unsigned char *moved = mremap(q, 4 * MIB, 9 * MIB, MREMAP_MAYMOVE);
    expect(moved != MAP_FAILED && all(moved, 4 * MIB, 3) && all(moved + 4 * MIB, 5 * MIB, 0), "mremap grows");
    unsigned char *there = mmap(NULL, 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(mremap(moved, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there && all(there, 2 * MIB, 3),
           "mremap moves to a fixed place");
    expect(mremap(moved + 2 * MIB, 7 * MIB, MIB, 0) == moved + 2 * MIB, "mremap shrinks");
    munmap(there, 2 * MIB);
    munmap(moved + 2 * MIB, MIB);

    /* A reservation far beyond the memory of any machine must cost nothing. */
    size_t huge = (size_t)1 << 42;
    unsigned char *r = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(r != MAP_FAILED, "a sparse reservation is not placed");
    r[huge / 2] = 1;
    munmap(r, huge);
}

static void *worker(void *arg) {
    uintptr_t seed = (uintptr_t)arg;
    for (int i = 0; i < 60; i++) {
        size_t n = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 42; /* up to 4 MiB */
        unsigned char *p = malloc(n + 1);
        memset(p, i, n + 1);
        for (int j = 0; j < 50; j++) free(malloc((seed >> 20) % 3000));
        if (!all(p, n + 1, i)) return (void *)1;
        free(p);
    }
    return NULL;
}

static void threads(void) {
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&t[i], NULL, worker, (void *)(i + 1));
    /* Forks while the threads allocate. */
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            unsigned char *p = malloc(2 * MIB);
            memset(p, 9, 2 * MIB);
            free(p);
            _exit(all(zeroed, sizeof zeroed, 5) ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        expect(status == 0, "a forked child allocates and sees its parent's memory");
    }
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(t[i], &result);
        expect(result == NULL, "threads keep what they wrote");
    }
}

static void heap(void) {
    enum { N = 400000 };
    static void *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = malloc(40);
        memset(blocks[i], i & 0xff, 40);
    }
    int ok = 1;
    for (int i = 0; i < N; i++) ok &= all(blocks[i], 40, i & 0xff);
    expect(ok, "small blocks keep what was written");
    for (int i = 0; i < N; i++) free(blocks[i]);
}

/* Memory that is placed where it is touched: by several threads at once, given back, moved, grown. */
static unsigned char *wide;
static const size_t wide_bytes = 80 * (size_t)MIB;
static void *toucher(void *arg) {
    uintptr_t me = (uintptr_t)arg;
    for (size_t page = me; page < wide_bytes / 4096; page += 4) memset(wide + page * 4096, (int)me + 1, 4096);
    return NULL;
}

static void wide_mappings(void) {
    wide = malloc(wide_bytes);
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&t[i], NULL, toucher, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    int ok = 1;
    for (size_t page = 0; page < wide_bytes / 4096; page++) ok &= all(wide + page * 4096, 4096, (int)(page % 4) + 1);
    expect(ok, "four threads touch a wide block");
    wide = realloc(wide, wide_bytes + 16 * MIB);
    expect(wide[5 * 4096] == 2 && all(wide + wide_bytes, 16 * MIB - 4096, 0), "a wide block grows");
    pid_t child = fork();
    if (child == 0) {
        memset(wide, 9, 4 * MIB);
        _exit(wide[6 * 4096 * 1000] == 1 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    expect(status == 0 && wide[0] == 1, "a forked child has a wide block of its own");
    wide = realloc(wide, 3 * MIB);
    expect(wide[4096] == 2, "a wide block shrinks");
    free(wide);

    /* The kernel itself writes into a hole. */
    unsigned char *p = mmap(NULL, wide_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int pipes[2];
    expect(pipe(pipes) == 0 && write(pipes[1], "hello", 5) == 5 && read(pipes[0], p + 7 * MIB + 100, 5) == 5
               && memcmp(p + 7 * MIB + 100, "hello", 5) == 0,
           "a system call writes into a hole");
    memset(p + 20 * MIB, 4, 4 * MIB);
    expect(madvise(p + 21 * MIB, MIB, MADV_DONTNEED) == 0 && all(p + 21 * MIB, MIB, 0) && p[20 * MIB] == 4,
           "what was dropped from a wide mapping is zero");
    expect(mprotect(p + 30 * MIB, 4096, PROT_NONE) == 0 && (p[31 * MIB] = 3) == 3, "a guard page within");
    unsigned char *q = mremap(p, wide_bytes, wide_bytes + 8 * MIB, MREMAP_MAYMOVE);
    if (q == MAP_FAILED) { /* the guard page has cut the mapping in three */
        q = p;
        expect(munmap(p + 30 * MIB, wide_bytes - 30 * MIB) == 0, "the end of a wide mapping goes");
        q = mremap(p, 30 * MIB, 40 * MIB, MREMAP_MAYMOVE);
    }
    expect(q != MAP_FAILED && q[20 * MIB] == 4 && all(q + 24 * MIB, 6 * MIB, 0), "a wide mapping moves");
    memset(q + 30 * MIB, 6, 10 * MIB);
    expect(all(q + 30 * MIB, 10 * MIB, 6), "and its new end can be used");
}

int main(int argc, char **argv) {
    if (argc > 1) return 0; /* started by exec below */
    expect(all(zeroed, sizeof zeroed, 0), "zeroed data is zero");
    memset(zeroed, 5, sizeof zeroed);
    small_things();
    large_blocks();
    mappings();
    heap();
    threads();
    wide_mappings();
    expect(all(zeroed, sizeof zeroed, 5), "zeroed data keeps what was written");
    pid_t child = vfork();
    if (child == 0) {
        execl("/proc/self/exe", "again", "again", (char *)NULL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    expect(status == 0, "vfork and exec work");
    child = vfork();
    if (child == 0) _exit(3);
    waitpid(child, &status, 0);
    expect(WEXITSTATUS(status) == 3, "vfork and _exit work");
    /* No address space left: the failure is reported, not fatal. */
    struct rlimit limit = {.rlim_cur = 512 * MIB, .rlim_max = 512 * MIB};
    setrlimit(RLIMIT_AS, &limit);
    errno = 0;
    expect(malloc(700 * (size_t)MIB) == NULL && errno == ENOMEM, "beyond the limit of address space: ENOMEM");
    unsigned char *p = malloc(3 * MIB);
    expect(p != NULL, "below it: memory");
    memset(p, 1, 3 * MIB);
    printf("%d failures\n", failures);
    return failures != 0;
}
