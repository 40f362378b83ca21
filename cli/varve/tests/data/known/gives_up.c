// Allocates, then gives up what its report would take, allocates more and ends. `gives_up root|rights|calls|descriptors`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 200; i++) {
        size_t bytes = (size_t)(i * 7919) % 300000 + 1;
        char *block = malloc(bytes);
        memset(block, 1, bytes);
        free(realloc(block, 2 * bytes));
    }
}

// Only what the C library's allocator and its end take.
static int forbid_calls(void) {
    static const int allowed[] = {SYS_brk,     SYS_mmap,  SYS_munmap,       SYS_mremap, SYS_madvise,   SYS_mprotect,
                                  SYS_write,   SYS_futex, SYS_rt_sigreturn, SYS_exit,   SYS_getrandom, SYS_exit_group};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * COUNT + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++) {
        filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {2 * COUNT + 2, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    work();
    int failed = 0;
    if (!strcmp(what, "root"))
        failed = chdir("/proc/self/fdinfo") || chroot(".");
    if (!strcmp(what, "rights"))
        failed = setgid(65534) || setuid(65534);
    if (!strcmp(what, "descriptors"))
        failed = syscall(SYS_close_range, 3, ~0u, 0);
    if (!strcmp(what, "calls"))
        failed = forbid_calls();
    if (failed)
        return errno;
    work();
    errno = 0;
    void *none = malloc((size_t)1 << 62);
    return none || errno != ENOMEM ? 99 : 0;
}
