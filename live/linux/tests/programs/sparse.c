/* Asks for far more than it uses, and prints the KiB that it holds in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t bytes = (size_t)1 << 30;
    char *a = malloc(bytes);
    for (int i = 0; i < 5; i++) memset(a + i * (bytes / 5), i, 100000);
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "RssAnon:", 8)) return atol(line + 8) > 150000;
    return 2;
}
