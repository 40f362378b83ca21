// Two plugins are loaded in turn, at the same addresses.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NAME
// The plugin itself.
__attribute__((noinline)) void *NAME(size_t bytes) {
    void *block = malloc(bytes);
    memset(block, 1, bytes);
    return block;
}
#else
enum { ROUNDS = 20, BLOCKS = 100 };

int main(int count, char **words) {
    for (int round = 0; round < ROUNDS; round++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/lib%c.so", words[1], round % 2 ? 'b' : 'a');
        void *plugin = dlopen(path, RTLD_NOW);
        void *(*make)(size_t) = (void *(*)(size_t))dlsym(plugin, round % 2 ? "make_b" : "make_a");
        void *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = make(round % 2 ? 3000 : 200);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        dlclose(plugin);
    }
    return count != 2;
}
#endif
