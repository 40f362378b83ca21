/* A program whose hot and cold memory is known, for `varve tier`: it asks the kernel, page by page, where both are.
 *
 *   tiered total=64 hot=8 budget=12 node=1 seconds=60 percent=95 do=read
 *
 * Takes `total` MiB, from node `node` first. `hot` of them, spread over all, are touched every 10 ms, and the others never
 * again. Once a second it prints where they are. It ends well once `percent` of the hot pages are on node 0 and no more than
 * `budget` MiB are; it fails if that has not come within `seconds`. With budget=0 it runs for all its seconds, unless least=PAGES
 * and most=PAGES say how many of all its pages are to be on node 0: then it ends well once so many are for three
 * seconds.
 *
 * block=2: hot memory comes in pieces of 2 MiB. do=huge: it asks for huge pages. do=pin: a pipe holds its first pages, so that they
 * cannot move. do=map: at the end it prints a digit for each page, hot ones first: the node that it is on. do=shared: its memory is a
 * shared mapping. workers=3: three children use the hot part, and it does not itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 256 }; /* a MiB in pages */

static long option(int count, char **words, const char *key, long otherwise) {
    size_t length = strlen(key);
    for (int i = 1; i < count; i++)
        if (!strncmp(words[i], key, length) && words[i][length] == '=')
            return strtol(words[i] + length + 1, NULL, 10);
    return otherwise;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static char *memory, *is_hot;

/* Uses the hot pages once. */
static void use(long total, int writes) {
    volatile char sum = 0;
    for (long i = 0; i < total; i++)
        for (long page = 0; is_hot[i] && page < MIB; page++) {
            volatile char *at = memory + (i * MIB + page) * PAGE;
            if (writes)
                *at = *at + 1;
            else
                sum += *at;
        }
    /* The processor notes a use when it looks a page up, and not while it still knows where it is. A program with more memory in
     * use has it look pages up again; this one has it forget them, which giving back many pages does. */
    char *other = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other != MAP_FAILED) {
        memset(other, 1, 64 * PAGE);
        munmap(other, 64 * PAGE);
    }
    usleep(10000);
}

int main(int count, char **words) {
    long total = option(count, words, "total", 64), hot = option(count, words, "hot", 8);
    long budget = option(count, words, "budget", 12), node = option(count, words, "node", -1);
    long seconds = option(count, words, "seconds", 60), percent = option(count, words, "percent", 95);
    long block = option(count, words, "block", 1);
    long workers = option(count, words, "workers", 0);
    long least = option(count, words, "least", -1), most = option(count, words, "most", -1);
    int writes = 0, huge = 0, pin = 0, map = 0, shared = 0;
    for (int i = 1; i < count; i++) {
        writes |= !strcmp(words[i], "do=write");
        huge |= !strcmp(words[i], "do=huge");
        pin |= !strcmp(words[i], "do=pin");
        map |= !strcmp(words[i], "do=map");
        shared |= !strcmp(words[i], "do=shared");
    }
    if (node >= 0) {
        unsigned long mask = 1ul << node;
        syscall(SYS_set_mempolicy, 1 /* MPOL_PREFERRED */, &mask, 65);
    }
    size_t bytes = (size_t)total << 20;
    int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
    memory = mmap(NULL, bytes + (2 << 20), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return 2;
    memory = (char *)(((size_t)memory + (2 << 20) - 1) >> 21 << 21);
    madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += PAGE)
        memory[at] = 1;
    syscall(SYS_set_mempolicy, 0, NULL, 0);
    int ends[2];
    struct iovec first = {memory, 16 * PAGE};
    if (pin && (pipe(ends) || vmsplice(ends[1], &first, 1, 0) < 0))
        return 2;
    /* Every total/hot-th piece. */
    is_hot = calloc(total, 1);
    for (long i = 0; i < hot; i++)
        is_hot[i / block * (total / block) / (hot / block) * block + i % block] = 1;
    void **pages = malloc(sizeof *pages * total * MIB);
    int *where = malloc(sizeof *where * total * MIB);
    for (long i = 0; i < total * MIB; i++)
        pages[i] = memory + i * PAGE;

    double begun = now(), told = begun;
    int stays = 0;
    for (long i = 0; i < workers; i++)
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                use(total, writes);
        }
    for (;;) {
        if (workers)
            usleep(100000);
        else
            use(total, writes);
        if (now() - told < 1)
            continue;
        told = now();
        long hot_fast = 0, cold_fast = 0;
        if (syscall(SYS_move_pages, 0, total * MIB, pages, NULL, where, 0))
            return 2;
        for (long i = 0; i < total * MIB; i++)
            if (where[i] == 0)
                *(is_hot[i / MIB] ? &hot_fast : &cold_fast) += 1;
        printf("%.0f s: on node 0 %ld of %ld hot pages, %ld of %ld cold ones\n", told - begun, hot_fast, hot * MIB, cold_fast,
               (total - hot) * MIB);
        fflush(stdout);
        int settled = budget && hot_fast * 100 >= percent * hot * MIB && hot_fast + cold_fast <= budget * MIB;
        stays = hot_fast + cold_fast >= least && hot_fast + cold_fast <= most ? stays + 1 : 0;
        int over = settled || stays == 3 || told - begun >= seconds;
        if (map && over)
            for (int turn = 1; turn >= 0; turn--) {
                printf(turn ? "hot " : "cold ");
                for (long i = 0; i < total * MIB; i++)
                    if (is_hot[i / MIB] == turn)
                        putchar('0' + where[i]);
                putchar('\n');
            }
        if (settled) {
            printf("settled after %.0f s\n", told - begun);
            return 0;
        }
        if (stays == 3) {
            printf("placed after %.0f s\n", told - begun);
            return 0;
        }
        if (over)
            return budget || most >= 0 ? 1 : 0;
    }
}
