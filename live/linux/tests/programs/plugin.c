// A library that is loaded while its program runs.
#include <stdlib.h>

void *plugin_make(size_t size) {
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}
