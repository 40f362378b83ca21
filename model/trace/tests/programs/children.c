/* Starts children in several ways; each of them, and the program itself, goes over a table. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile long table[4096];

static void work(void) {
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 4096; i++) table[i] += round;
}

int main(int count, char **words) {
    work();
    if (count > 1) return 0;
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        work();
        _exit(3);
    }
    waitpid(child, &status, 0);
    char *args[] = {words[0], "child", NULL};
    if (posix_spawn(&child, words[0], NULL, NULL, args, environ) == 0) waitpid(child, &status, 0);
    char command[4096];
    snprintf(command, sizeof command, "%s child", words[0]);
    return system(command);
}
