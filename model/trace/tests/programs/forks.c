/* Allocates at one place in three processes. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static int work(void) {
    char *block = malloc(5000);
    if (!block) abort();
    block[1] = 1;
    int read = block[1];
    free(block);
    return read - 1;
}

int main(void) {
    for (int children = 0; children < 2; children++)
        if (fork() == 0)
            break;
    int result = work();
    while (wait(NULL) > 0) {
    }
    return result;
}
