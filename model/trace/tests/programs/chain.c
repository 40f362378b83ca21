/* Allocates four calls deep. */
#include <stdlib.h>

__attribute__((noinline)) static void *inner(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) abort();
    return block;
}
__attribute__((noinline)) static char *middle(size_t bytes) {
    char *block = inner(bytes);
    block[0] = 1;
    return block;
}
__attribute__((noinline)) static char *outer(size_t bytes) {
    char *block = middle(bytes + 1);
    block[1] = 1;
    return block;
}

int main(void) {
    char *block = outer(12344);
    int result = block[0] - block[1];
    free(block);
    return result;
}
