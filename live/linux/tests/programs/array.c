/* Touches an array of the given number of MiB, checks it, and waits for a line on its input before it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t bytes = (size_t)atoi(argv[1]) << 20;
    unsigned char *a = malloc(bytes);
    memset(a, 7, bytes);
    size_t sum = 0;
    for (size_t i = 0; i < bytes; i++) sum += a[i];
    printf("ready\n");
    fflush(stdout);
    if (argc > 2) getchar();
    return sum == 7 * bytes ? 0 : 1;
}
