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
 * Under `varve run --live` blocks are in the memory that is asked for; fast memory is given while the run's budget has room,
 * before all sites. Everywhere else this is malloc: the header is all that is needed, and nothing is linked.
 * The blocks are malloc's: realloc keeps them in their kind of memory, and free takes them. C11 and C++, GNU C library. */
#ifndef VARVE_H
#define VARVE_H

#include <dlfcn.h>
#include <stdlib.h>

enum varve_tier { VARVE_FAST = 0, VARVE_SLOW = 1 };

typedef void *varve_malloc_function(size_t size, int tier);

/* Without the preloaded allocator. */
static inline void *varve_plain_malloc(size_t size, int tier) {
    (void)tier;
    return malloc(size);
}

/* Looked up once in each file that includes this: weak symbols of an executable would hide the preloaded ones. Threads that
 * look at the same time find the same. */
static inline void *varve_malloc(size_t size, enum varve_tier tier) {
    static void *found;
    void *function = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (!function) {
        void *self = dlopen((const char *)0, RTLD_LAZY);
        function = self ? dlsym(self, "varve_shim_malloc") : (void *)0;
        if (!function) function = (void *)varve_plain_malloc;
        __atomic_store_n(&found, function, __ATOMIC_RELAXED);
    }
    return ((varve_malloc_function *)function)(size, (int)tier);
}

static inline void varve_free(void *block) { free(block); }

#endif
