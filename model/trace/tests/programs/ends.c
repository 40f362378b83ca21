/* Ends in the way that its argument says, after some work. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long table[4096];

static void work(void) {
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 4096; i++) table[i] += round;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    work();
    if (!strcmp(how, "crash")) *(volatile int *)8 = 1;
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "exec")) execl("/bin/true", "true", (char *)0);
    if (!strcmp(how, "fork")) {
        int status = 0;
        if (fork() == 0) {
            work();
            _exit(4);
        }
        wait(&status);
        work();
        return WEXITSTATUS(status) + 1;
    }
    return 5;
}
