// Does one strange thing that programs do, with memory of known sizes. `strange HOW [NUMBER]`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 32, BYTES = 128 << 10 };
static char *blocks[BLOCKS];

// 4 MiB that are kept, and read again.
__attribute__((noinline)) static void make_table(void) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], i, BYTES);
    }
}

__attribute__((noinline)) static int read_table(void) {
    int sum = 0;
    for (int i = 0; i < BLOCKS; i++)
        for (int at = 0; at < BYTES; at += 64)
            sum += blocks[i][at];
    return sum;
}

static void end(int code) {
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    exit(code);
}

static int forks(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            char *own = malloc(1000);
            memset(own, 1, 1000);
            _exit(blocks[i % BLOCKS][0] != i % BLOCKS);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status)
            return 2;
    }
    return 0;
}

// Becomes itself once more, `count` times.
static int execs(char *self, int count) {
    char number[16];
    if (count == 0)
        return 0;
    snprintf(number, sizeof number, "%d", count - 1);
    execl(self, self, "execs", number, (char *)NULL);
    return errno;
}

// More than there is anywhere, under a limit of 64 MiB: it is told so, and goes on.
static int no_memory(void) {
    struct rlimit limit = {64 << 20, 64 << 20};
    if (setrlimit(RLIMIT_AS, &limit))
        return 1;
    errno = 0;
    return malloc((size_t)1 << 42) != NULL || errno != ENOMEM;
}

static int prints(int mebibytes) {
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < mebibytes * 16; i++)
        if (fwrite(line, 1, sizeof line, stdout) != sizeof line)
            return 1;
    return fflush(stdout);
}

// A file and a process of names that are not UTF-8.
static int names(const char *name) {
    int file = open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || close(file) || unlink(name))
        return 1;
    return prctl(PR_SET_NAME, "\xff\xfe\x80 name", 0, 0, 0) != 0;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    const char *what = count > 2 ? words[2] : "0";
    make_table();
    int failed = read_table() == 1;
    if (!strcmp(how, "crashes"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "aborts"))
        abort();
    if (!strcmp(how, "exits"))
        end(atoi(what));
    if (!strcmp(how, "exits-at-once"))
        _exit(atoi(what));
    if (!strcmp(how, "forks"))
        failed = forks(atoi(what));
    if (!strcmp(how, "execs"))
        failed = execs(words[0], atoi(what));
    if (!strcmp(how, "descriptors"))
        failed = syscall(SYS_close_range, 3, ~0u, 0);
    if (!strcmp(how, "streams"))
        failed = syscall(SYS_close_range, 0, ~0u, 0);
    if (!strcmp(how, "root"))
        failed = chdir("/proc/self/fdinfo") || chroot(".");
    if (!strcmp(how, "memory"))
        failed = no_memory();
    if (!strcmp(how, "prints"))
        failed = prints(atoi(what));
    if (!strcmp(how, "names"))
        failed = names(what);
    end(failed);
}
