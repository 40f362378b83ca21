/* Memory of a chosen kind, for programs that know better than a profile.
 *
 *     #include "varve.h"
 *
 *     struct index *index = varve_malloc(sizeof *index, VARVE_FAST);
 *     char *archive = varve_malloc(1 << 30, VARVE_SLOW);
 *     ...
 *     varve_free(archive);
 *     varve_free(index);
 *
 *     void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
 *     varve_mcolor(table, bytes, VARVE_HOT);
 *
 * Under `varve run --live` blocks are in the memory that is asked for; fast memory is given while the run's budget has room,
 * before all sites. Everywhere else this is malloc: the header is all that is needed, and nothing is linked.
 * The blocks are malloc's: realloc keeps them in their kind of memory, and free takes them. C11 and C++, GNU C library. */
#ifndef VARVE_H
#define VARVE_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum varve_tier { VARVE_FAST = 0, VARVE_SLOW = 1 };

/* Hot memory is fast; on a machine with one memory it is on DIMMs that stay awake. */
enum varve_color { VARVE_HOT = 0, VARVE_COLD = 1 };

typedef void *varve_malloc_function(size_t size, int tier);
typedef int varve_mcolor_function(void *start, size_t bytes, int color);

/* Without the preloaded allocator. */
static inline void *varve_plain_malloc(size_t size, int tier) {
    (void)tier;
    return malloc(size);
}

/* A function of the preloaded library, else the plain one. Looked up once in each file that includes this: weak symbols of
 * an executable would hide the preloaded ones. Threads that look at the same time find the same. */
static inline void *varve_look_up(void **found, const char *name, void *plain) {
    void *function = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (!function) {
        void *self = dlopen((const char *)0, RTLD_LAZY);
        function = self ? dlsym(self, name) : (void *)0;
        if (!function) function = plain;
        __atomic_store_n(found, function, __ATOMIC_RELAXED);
    }
    return function;
}

static inline void *varve_malloc(size_t size, enum varve_tier tier) {
    static void *found;
    void *function = varve_look_up(&found, "varve_shim_malloc", __extension__(void *)varve_plain_malloc);
    return (__extension__(varve_malloc_function *)function)(size, (int)tier);
}

static inline void varve_free(void *block) { free(block); }

/* Without a library that places memory. */
static inline int varve_plain_mcolor(void *start, size_t bytes, int color) {
    (void)start, (void)bytes, (void)color;
    return 0;
}

/* Gives a range of memory a color, until it gets another one or is unmapped. A hint: without Varve nothing but a name changes.
 *
 * The color is that of the pages wholly inside of the range. With none, as with zero bytes, nothing happens, and that is no
 * error. Their contents stay as they are. Pages that are there already migrate, so that it is best to color a new mapping.
 *
 * Under `varve run --live` hot pages are in fast memory while its budget has room, and cold ones in slow memory. For blocks of
 * malloc take varve_malloc: their pages stay where the allocator has them. Where the kernel names anonymous memory
 * (CONFIG_ANON_VMA_NAME), the pages are [anon:varve-hot] or [anon:varve-cold] in /proc/PID/maps, for
 * `varve tier --policy trays --hot varve-hot`. On a model the plan `hints` goes by the colors.
 *
 * Returns 0, and leaves errno as it is; or -1 with errno, and then no page has a new color:
 *     EINVAL  the color is none of the two, or the range goes beyond the last address
 *     ENOMEM  a page inside of the range is not mapped */
static inline int varve_mcolor(void *start, size_t bytes, enum varve_color color) {
    static void *found;
    void *function = varve_look_up(&found, "varve_shim_mcolor", __extension__(void *)varve_plain_mcolor);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start, end = first + bytes;
    int error = errno;
    if ((color != VARVE_HOT && color != VARVE_COLD) || end < first) return errno = EINVAL, -1;
    first = (first + page - 1) & ~(page - 1), end &= ~(page - 1);
    /* A start within the last page is rounded up to 0. */
    if (first >= end || first < (uintptr_t)start) return 0;
    start = (void *)first, bytes = (size_t)(end - first);
    /* Synchronizes nothing, and fails where nothing is mapped. */
    if (msync(start, bytes, MS_ASYNC) != 0) return -1;
    /* PR_SET_VMA, PR_SET_VMA_ANON_NAME: older headers lack them, and kernels that do refuse them. So does memory of a file. */
    (void)prctl(0x53564d41, 0UL, (unsigned long)first, (unsigned long)bytes, color == VARVE_HOT ? "varve-hot" : "varve-cold");
    errno = error;
    return (__extension__(varve_mcolor_function *)function)(start, bytes, (int)color);
}

#endif
