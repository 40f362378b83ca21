/* A program whose hot pages conflict in a pretended DRAM cache, for `varve tier --policy dynamic`, and that checks itself all the time.
 *
 *   conflicts total=32 cache=4 pairs=64 threads=2 seconds=60 allow=0 do=share do=fork
 *
 * Takes `total` MiB of node 0, asks the kernel for the frame of each page, and has two hot pages in each of `pairs` bins of a
 * cache of `cache` MiB. Each thread has a word of its own in every hot page: it counts there, and knows what the word must be. All
 * other pages hold their number. Once a second it prints how many hot pages are in a bin with another hot one. It ends well once
 * no more than `allow` have been for three seconds, and after `least` seconds, and fails if that has not come within `seconds`; with allow=-1 it
 * runs for all its seconds. Any word that is not what it must be is a failure at once.
 *
 * do=leave: hot pages are spread evenly over the memory, and those conflict that are in the 64 MiB of physical addresses in which most of the
 * memory is at first; it prints where that is.
 *
 * do=share: the memory is shared, and a child process has threads of its own there. do=fork: children are started all the time, each of which
 * looks at the memory and writes into its copy. do=huge: pages of 2 MiB. do=pin: a pipe holds the hot pages that are first of
 * their bins. do=exec: it begins anew in its place, once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, WORDS = 8 };

static char *memory;
static size_t page = 4096, pages;
static size_t hot[MOST];
static long hots, threads;
static volatile int over;

static long option(int count, char **words, const char *key, long otherwise) {
    size_t length = strlen(key);
    for (int i = 1; i < count; i++)
        if (!strncmp(words[i], key, length) && words[i][length] == '=')
            otherwise = strtol(words[i] + length + 1, NULL, 10);
    return otherwise;
}

static int does(int count, char **words, const char *what) {
    for (int i = 1; i < count; i++)
        if (!strncmp(words[i], "do=", 3) && !strcmp(words[i] + 3, what))
            return 1;
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void lost(const char *what, size_t number, unsigned long is, unsigned long must) {
    printf("LOST: %s of page %zu is %lu and must be %lu\n", what, number, is, must);
    fflush(stdout);
    _exit(3);
}

/* The first frame of a page. */
static unsigned long frame(int map, size_t number) {
    unsigned long entry = 0;
    if (pread(map, &entry, 8, (size_t)(memory + number * page) / 4096 * 8) != 8 || !(entry >> 63))
        return 0;
    return (entry & ((1ul << 55) - 1)) / (page / 4096);
}

/* The number at the end of a page, which nobody changes. */
static volatile unsigned long *number_of(size_t number) { return (unsigned long *)(memory + (number + 1) * page) - 1; }

/* A thread's word, 64 bytes apart, in a different line for each 4 KiB of a page. */
static volatile unsigned long *word(size_t number, long thread) { return (unsigned long *)(memory + number * page + 64 * thread); }

static void *work(void *argument) {
    long thread = (long)argument;
    unsigned long *must = calloc(hots, sizeof *must);
    for (long i = 0; i < hots; i++)
        must[i] = *word(hot[i], thread);
    while (!over) {
        for (long i = 0; i < hots; i++) {
            volatile unsigned long *at = word(hot[i], thread);
            if (*at != must[i])
                lost("a thread's word", hot[i], *at, must[i]);
            *at = ++must[i];
        }
        usleep(2000);
    }
    free(must);
    return NULL;
}

static void check_all(void) {
    for (size_t i = 0; i < pages; i++)
        if (*number_of(i) != i)
            lost("the number", i, *number_of(i), i);
}

/* A child of a program that goes on: its copy is what was there, and what it writes stays. */
static int in_a_child(void) {
    check_all();
    for (int turn = 0; turn < 20; turn++) {
        for (long i = 0; i < hots; i++)
            *word(hot[i], WORDS) = turn + i;
        usleep(5000);
        for (long i = 0; i < hots; i++)
            if (*word(hot[i], WORDS) != (unsigned long)(turn + i))
                lost("a child's word", hot[i], *word(hot[i], WORDS), turn + i);
    }
    return 0;
}

/* Physical addresses that hot pages are to leave. */
static unsigned long from, to;

static long conflicting(int map, unsigned long bins) {
    if (to) {
        long inside = 0;
        for (long i = 0; i < hots; i++) {
            unsigned long at = frame(map, hot[i]) * page;
            inside += at >= from && at < to;
        }
        return inside;
    }
    unsigned char *load = calloc(bins, 1);
    long all = 0;
    for (long i = 0; i < hots; i++)
        load[frame(map, hot[i]) % bins]++;
    for (long i = 0; i < hots; i++)
        all += load[frame(map, hot[i]) % bins] > 1;
    free(load);
    return all;
}

int main(int count, char **words) {
    long total = option(count, words, "total", 32), cache = option(count, words, "cache", 4);
    long pairs = option(count, words, "pairs", 64), seconds = option(count, words, "seconds", 60);
    long allow = option(count, words, "allow", 0), least = option(count, words, "least", 0);
    threads = option(count, words, "threads", 2);
    int share = does(count, words, "share"), forks = does(count, words, "fork"), huge = does(count, words, "huge");
    if (does(count, words, "exec")) {
        char **again = calloc(count + 1, sizeof *again);
        for (int i = 0, at = 0; i < count; i++)
            if (strcmp(words[i], "do=exec"))
                again[at++] = words[i];
        sleep(2);
        execv("/proc/self/exe", again);
        return 2;
    }
    if (huge)
        page = 2 << 20;
    unsigned long mask = 1;
    syscall(SYS_set_mempolicy, 1 /* MPOL_PREFERRED */, &mask, 65);
    size_t bytes = (size_t)total << 20;
    pages = bytes / page;
    memory = mmap(NULL, bytes + (2 << 20), PROT_READ | PROT_WRITE, (share ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 2;
    memory = (char *)(((size_t)memory + (2 << 20) - 1) >> 21 << 21);
    madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        *number_of(i) = i;
    int map = open("/proc/self/pagemap", O_RDONLY);
    unsigned long bins = ((unsigned long)cache << 20) / page;
    size_t *first = malloc(bins * sizeof *first);
    memset(first, 0xff, bins * sizeof *first);
    char *full = calloc(bins, 1);
    int ends[2], pin = does(count, words, "pin");
    if (pin && pipe(ends))
        return 2;
    if (does(count, words, "leave")) {
        enum { PARTS = 4096 };
        static unsigned long there[PARTS], most;
        for (size_t i = 0; i < pages; i++)
            there[frame(map, i) * page >> 26 & (PARTS - 1)]++;
        for (unsigned long i = 0; i < PARTS; i++)
            most = there[i] > there[most] ? i : most;
        from = most << 26;
        to = (most + 1) << 26;
        printf("leave %lu to %lu\n", from >> 20, to >> 20);
        fflush(stdout);
    }
    for (; to && hots < 2 * pairs && hots < MOST; hots++)
        hot[hots] = hots * (pages / (2 * pairs));
    for (size_t i = 0; i < pages && hots < 2 * pairs && hots + 2 <= MOST; i++) {
        unsigned long at = frame(map, i) % bins;
        if (first[at] == (size_t)-1) {
            first[at] = i;
        } else if (!full[at]) {
            full[at] = 1;
            hot[hots++] = first[at];
            hot[hots++] = i;
            /* Whichever of the two the policy would rather move: one of them cannot be. */
            struct iovec held = {memory + (hots % 4 ? i : first[at]) * page, 4096};
            if (pin && vmsplice(ends[1], &held, 1, 0) < 0)
                return 2;
        }
    }
    syscall(SYS_set_mempolicy, 0, NULL, 0);
    if (hots < 2 * pairs) {
        printf("only %ld of %ld pairs: more total memory makes more\n", hots / 2, pairs);
        return 2;
    }
    pid_t other = share ? fork() : -1;
    long own = other == 0 ? threads : 0;
    pthread_t ids[WORDS];
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)(own + i));
    double begun = now(), told = begun;
    int stays = 0, ended = 0;
    long most = 0;
    if (other == 0) {
        while (getppid() != 1)
            usleep(100000);
        return 0;
    }
    while (!ended) {
        usleep(100000);
        if (forks) {
            pid_t child = fork();
            if (!child)
                _exit(in_a_child());
            int status;
            while (waitpid(-1, &status, WNOHANG) > 0)
                if (status)
                    return 3;
        }
        if (other > 0 && waitpid(other, NULL, WNOHANG) > 0)
            return 3;
        if (now() - told < 1)
            continue;
        told = now();
        long still = conflicting(map, bins);
        most = still > most ? still : most;
        printf("%.0f s: %ld of %ld hot pages conflict\n", told - begun, still, hots);
        fflush(stdout);
        stays = allow >= 0 && still <= allow ? stays + 1 : 0;
        if (stays >= 3 && told - begun >= least)
            ended = 1;
        else if (told - begun >= seconds) {
            if (allow >= 0)
                return 1;
            ended = 1;
        }
    }
    over = 1;
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (other > 0) {
        kill(other, 9);
        waitpid(other, NULL, 0);
    }
    int status;
    while (waitpid(-1, &status, 0) > 0)
        if (status && !share)
            return 3;
    check_all();
    printf("intact after %.0f s; at most %ld conflicted\n", now() - begun, most);
    return 0;
}
