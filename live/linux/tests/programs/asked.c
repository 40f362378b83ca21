// A program that asks for memory by name: the example of varve.h.
#include "varve.h"
#include <string.h>

int main(void) {
    for (int i = 0; i < 100; i++) {
        char *index = varve_malloc(10000, VARVE_FAST), *archive = varve_malloc(10000, VARVE_SLOW);
        if (!index || !archive) return 1;
        memset(index, i, 10000), memset(archive, i, 10000);
        archive = realloc(archive, 20000);
        if (!archive || archive[9999] != i) return 2;
        memset(archive, i, 20000);
        if (i % 2) varve_free(archive), varve_free(index);
    }
    return 0;
}
