// Objects of sites that differ in their return addresses, and of sites behind one wrapper.
//
//   objects COMMAND [NUMBER]     prints what each command says below
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
// Keeps a call from becoming a jump, so that its frame is there.
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

// Statics of their own pages.
__attribute__((aligned(4096))) char table[64 << 12] = {1};

APART void *hot(size_t size) {
    void *p = malloc(size);
    KEEP(p);
    return p;
}
APART void *cold(size_t size) {
    void *p = calloc(1, size);
    KEEP(p);
    return p;
}
APART void *xmalloc(size_t size) {
    void *p = malloc(size);
    KEEP(p);
    return p;
}
APART void *wrapped_hot(size_t size) {
    void *p = xmalloc(size);
    KEEP(p);
    return p;
}
APART void *wrapped_cold(size_t size) {
    volatile char room[200 + size % 16]; // a frame that only the frame pointer tells
    room[0] = 1;
    void *p = xmalloc(size);
    KEEP(p);
    return p;
}
APART void *aligned_hot(size_t size) {
    void *p = 0;
    if (posix_memalign(&p, 512, size)) abort();
    KEEP(p);
    return p;
}
APART void *zeroed_hot(size_t size) {
    void *p = calloc(size / 8, 8);
    KEEP(p);
    return p;
}
APART void *vast_hot(size_t size) {
    void *p = aligned_alloc(32 << 20, size);
    KEEP(p);
    return p;
}
APART void *grow_hot(void *old, size_t size) {
    void *p = realloc(old, size);
    KEEP(p);
    return p;
}
APART void *grow_cold(void *old, size_t size) {
    void *p = realloc(old, size);
    KEEP(p);
    return p;
}
APART void *nobody(size_t size) {
    void *p = malloc(size);
    KEEP(p);
    return p;
}
APART void *mapped_cold(size_t size) {
    void *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    KEEP(p);
    return p;
}

APART void *mapped_hot(size_t size) {
    void *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    KEEP(p);
    return p;
}

typedef void *(*maker)(size_t);
static maker const makers[] = {hot, cold, wrapped_hot, wrapped_cold, aligned_hot, nobody};
enum { MAKERS = sizeof makers / sizeof *makers };

// Blocks that threads hand to one another: the thread that takes one frees it.
#define SHELF 512
static struct block { size_t size; unsigned char mark; } *shelf[SHELF];
static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(struct block *b, size_t size, unsigned char mark) {
    memset(b, mark, size);
    b->size = size;
    b->mark = mark;
}
static void check(const struct block *b) {
    const unsigned char *bytes = (const unsigned char *)b;
    for (size_t i = sizeof *b; i < b->size; i += 1 + i / 8)
        if (bytes[i] != b->mark) {
            fprintf(stderr, "a block changed\n");
            abort();
        }
    if (malloc_usable_size((void *)b) < b->size) abort();
}

static void *work(void *seed) {
    uint64_t x = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        size_t size = sizeof(struct block) + (x >> 8) % ((x & 63) ? 2000 : 300000);
        struct block *b = makers[(x >> 40) % MAKERS](size);
        if (!b) abort();
        fill(b, size, (unsigned char)(x >> 3));
        if (x % 5 == 0) { // across memories: the site of this call decides
            size_t more = size + (x >> 20) % 5000;
            b = grow_hot(b, more);
            check(b);
            fill(b, more, (unsigned char)(x >> 5));
        } else if (x % 7 == 0) { // from no site: stays
            b = realloc(b, size / 2 + sizeof *b);
            fill(b, size / 2 + sizeof *b, 3);
        }
        pthread_mutex_lock(&shelf_lock);
        struct block **place = &shelf[(x >> 30) % SHELF], *old = *place;
        *place = b;
        pthread_mutex_unlock(&shelf_lock);
        if (old) check(old), free(old);
    }
    return 0;
}

static int stress(int threads) {
    for (int round = 0; round < 3; round++) { // threads end and others begin
        pthread_t ids[64];
        for (int i = 0; i < threads; i++)
            if (pthread_create(&ids[i], 0, work, (void *)(uintptr_t)(i + 64 * round))) abort();
        pid_t child = fork(); // while they run
        if (child == 0) {
            shelf_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
            // A block may be half filled here, so those that threads hold are not checked.
            memset(shelf, 0, sizeof shelf);
            work((void *)999);
            exit(7);
        }
        for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            fprintf(stderr, "the child ended with %x\n", status);
            return 1;
        }
    }
    for (int i = 0; i < SHELF; i++)
        if (shelf[i]) check(shelf[i]), free(shelf[i]);
    return 0;
}

static void touch(char *p, size_t size) {
    for (size_t i = 0; i < size; i += 512) p[i] = 1;
}

// Pages with numbers from `first` on.
static void number_pages(char *p, size_t size, uint64_t first) {
    for (size_t i = 0; i < size; i += 4096) *(uint64_t *)(p + i) = first + i / 4096;
}
static int are_numbered(const char *p, size_t size, uint64_t first) {
    for (size_t i = 0; i < size; i += 4096)
        if (*(const uint64_t *)(p + i) != first + i / 4096) return 0;
    return 1;
}

static int are_zeros(const char *p, size_t size) {
    for (size_t i = 0; i < size; i += 8)
        if (*(const uint64_t *)(p + i)) return 0;
    return 1;
}

// 8 MiB are mapped. NUMBER says what becomes of them.
static int mappings(int number) {
    size_t m = 1 << 20;
    char *p = mapped_hot(8 * m), *q;
    number_pages(p, 8 * m, 1);
    if (number == 1) { // holes, and as much again
        if (munmap(p + m, m) || munmap(p + 6 * m, m)) return 1;
        touch(mapped_hot(2 * m), 2 * m);
        if (!are_numbered(p + 2 * m, 4 * m, 513)) return 2;
    } else if (number == 2) { // twice the size, elsewhere
        // in the way, unless something is there already
        mmap(p + 8 * m, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (mremap(p, 8 * m, 16 * m, 0) != MAP_FAILED) return 3;
        q = mremap(p, 8 * m, 16 * m, MREMAP_MAYMOVE);
        if (q == MAP_FAILED || q == p || !are_numbered(q, 8 * m, 1)) return 4;
        number_pages(q, 16 * m, 7);
        if (!are_numbered(q, 16 * m, 7)) return 5;
    } else if (number == 3) { // a quarter of the size, and then three times that
        if (mremap(p, 8 * m, 2 * m, 0) != p) return 6;
        q = mremap(p, 2 * m, 6 * m, MREMAP_MAYMOVE);
        if (q == MAP_FAILED || !are_numbered(q, 2 * m, 1)) return 7;
        number_pages(q, 6 * m, 1);
    } else if (number == 4) { // to a place of its own, and gone
        char *to = mmap(0, 8 * m, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        q = mremap(p, 8 * m, 8 * m, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (q != to || !are_numbered(q, 8 * m, 1)) return 8;
        if (munmap(q, 8 * m)) return 9;
    } else if (number == 5) { // others come to the same place
        q = mmap(p, 2 * m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (q != p || q[0] || !are_numbered(p + 2 * m, 6 * m, 513)) return 10;
    }
    return 0;
}

static void *let_go(void *p) {
    free(p);
    return 0;
}

// 8 MiB of MAKER. NUMBER says what becomes of them.
static int large(maker make, int number) {
    size_t m = 1 << 20;
    char *p = make(8 * m), *q;
    if (!p || malloc_usable_size(p) < 8 * m) return 1;
    number_pages(p, 8 * m, 1);
    if (number == 1) { // a little less, and then a quarter
        q = realloc(p, 7 * m);
        KEEP(q);
        if (q != p) return 2;
        q = realloc(q, 2 * m);
        KEEP(q);
        if (q == p || !are_numbered(q, 2 * m, 1)) return 3;
    } else if (number == 2) { // twice the size
        q = realloc(p, 16 * m);
        KEEP(q);
        if (!are_numbered(q, 8 * m, 1)) return 4;
        number_pages(q, 16 * m, 7);
    } else if (number == 3) { // gone, by another thread, and as much again
        pthread_t other;
        if (pthread_create(&other, 0, let_go, p) || pthread_join(other, 0)) return 5;
        q = make(8 * m);
        if (make == zeroed_hot && !are_zeros(q, 8 * m)) return 6;
        number_pages(q, 8 * m, 9);
    } else if (number == 4) { // gone in a child, and still there
        pid_t child = fork();
        if (!child) {
            if (!are_numbered(p, 8 * m, 1)) _exit(1);
            free(p);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) return 7;
        if (!are_numbered(p, 8 * m, 1)) return 8;
    } else if (number == 5) { // gone
        free(p);
    } else if (number == 6) { // to memory of another site
        q = grow_cold(p, 9 * m);
        if (!are_numbered(q, 8 * m, 1)) return 9;
    } else if (number == 7) { // more than there is
        if (realloc(p, SIZE_MAX / 4) || !are_numbered(p, 8 * m, 1)) return 10;
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(command, "stress")) return stress(number);
    if (!strcmp(command, "keep")) { // NUMBER objects of 1000 bytes of each maker, kept
        for (int i = 0; i < number; i++)
            for (int m = 0; m < MAKERS; m++) touch(makers[m](1000), 1000);
        touch(mapped_cold(1 << 20), 1 << 20);
        return 0;
    }
    if (!strcmp(command, "map")) return mappings(number);
    if (!strcmp(command, "large")) return large(hot, number);
    if (!strcmp(command, "zeroed")) return large(zeroed_hot, number);
    if (!strcmp(command, "vast")) return large(vast_hot, number);
    if (!strcmp(command, "grow")) { // one object of each of two sites, from 1 KiB to NUMBER MiB
        char *a = hot(1024), *b = cold(1024);
        for (size_t size = 2048; size <= (size_t)number << 20; size *= 2) {
            memset(a, 5, size / 2), memset(b, 6, size / 2);
            a = realloc(a, size), b = realloc(b, size); // of no site: both stay
            KEEP(a);
            KEEP(b);
            if (a[size / 2 - 1] != 5 || b[size / 2 - 1] != 6) return 1;
        }
        touch(a, (size_t)number << 20), touch(b, (size_t)number << 20);
        return 0;
    }
    if (!strcmp(command, "serve")) { // an object of 2 MiB, until the file of the name in argv[2] is gone
        touch(hot(2 << 20), 2 << 20);
        char ready[4096];
        snprintf(ready, sizeof ready, "%s.ready", argv[2]);
        if (close(creat(ready, 0600))) return 1;
        while (!access(argv[2], F_OK)) usleep(1000);
        return 0;
    }
    if (!strcmp(command, "spill")) { // NUMBER objects of 64 KiB twice; half of the first are freed between
        char **all = calloc(number, sizeof *all);
        for (int i = 0; i < number; i++) touch(all[i] = hot(64 << 10), 64 << 10);
        for (int i = 0; i < number; i += 2) free(all[i]);
        for (int i = 0; i < number; i++) touch(wrapped_hot(64 << 10), 64 << 10);
        return 0;
    }
    if (!strcmp(command, "fork")) { // what each of two processes keeps
        char *shared = hot(1 << 20);
        touch(shared, 1 << 20);
        pid_t child = fork();
        if (!child) touch(shared, 1 << 20); // pages of its own
        touch(cold(1 << 20), 1 << 20);
        int status = 0;
        if (child) waitpid(child, &status, 0);
        return status;
    }
    if (!strcmp(command, "exec")) {
        touch(cold(1 << 20), 1 << 20);
        execl(argv[0], argv[0], "keep", argv[2], (char *)0);
        return 1;
    }
    if (!strcmp(command, "load")) { // a library of the name in argv[2] gives 1000 objects
        void *library = dlopen(argv[2], RTLD_NOW);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        maker make = (maker)dlsym(library, "plugin_make");
        for (int i = 0; i < 1000; i++) touch(make(1000), 1000);
        return 0;
    }
    if (!strcmp(command, "corners")) {
        free(0);
        if (!malloc(0) || realloc(0, 0) == 0) return 1;
        void *p = 0;
        if (posix_memalign(&p, 3, 8) == 0 || posix_memalign(&p, 64, 8) || (uintptr_t)p % 64) return 2;
        free(p);
        volatile size_t most = SIZE_MAX / 2;
        if (malloc(most) || calloc(most, 4) || reallocarray(0, most, 4)) return 3;
        for (size_t align = 16; align <= (64 << 20); align *= 4) {
            char *a = aligned_alloc(align, 100), *v = memalign(align, align / 2 + 1);
            if (!a || !v || (uintptr_t)a % align || (uintptr_t)v % align) return 4;
            memset(a, 1, 100), memset(v, 1, align / 2 + 1);
            if (malloc_usable_size(v) < align / 2 + 1) return 5;
            free(a);
            v = realloc(v, align * 2);
            if (!v || v[align / 2] != 1) return 6;
            free(v);
        }
        if ((uintptr_t)valloc(1) % 4096 || (uintptr_t)pvalloc(5000) % 4096) return 7;
        char *foreign = dlsym(RTLD_NEXT, "__libc_malloc") ? ((void *(*)(size_t))dlsym(RTLD_NEXT, "__libc_malloc"))(100) : 0;
        if (foreign) {
            strcpy(foreign, "another's");
            if (malloc_usable_size(foreign) < 100) return 8;
            foreign = grow_hot(foreign, 5000);
            if (strcmp(foreign, "another's")) return 9;
            free(foreign);
            free(((void *(*)(size_t))dlsym(RTLD_NEXT, "__libc_malloc"))(50));
        }
        return 0;
    }
    fprintf(stderr, "unknown command\n");
    return 2;
}
