// A program that colors its memory: a table that it reads at random is hot, an archive that it writes once is cold.
//
// apart    colors new mappings          later    colors them when they are written
// asked    asks for blocks by name      blocks   colors blocks of malloc
// changes  the table is cold at last, and unmapped
// errors   what varve_mcolor returns; with -DNAMES also the names that it gives
#include "varve.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
static const size_t TABLE = 48 * MIB, ARCHIVE = 32 * MIB, PAGE = 4096;

#ifdef NAMES
static char named[400];

// In place of the C library's: which pages have which name.
#ifdef __cplusplus
extern "C" int prctl(int option, ...) noexcept {
#else
int prctl(int option, ...) {
#endif
    va_list rest;
    va_start(rest, option);
    unsigned long what = va_arg(rest, unsigned long), start = va_arg(rest, unsigned long), bytes = va_arg(rest, unsigned long);
    const char *name = va_arg(rest, const char *);
    va_end(rest);
    size_t used = strlen(named);
    // Allocators name their memory too.
    if (option == 0x53564d41 && what == 0 && start % PAGE == 0 && !strncmp(name, "varve-", 6))
        snprintf(named + used, sizeof named - used, " %s=%lu", name, bytes / PAGE);
    errno = EBADF;
    return -1;
}
#endif

static char *mapping(size_t bytes) {
    return (char *)mmap((void *)0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

#define HOLDS(what) \
    if (!(what)) return printf("line %d: %s\n", __LINE__, #what), 1

static int errors(void) {
    char *start = mapping(8 * PAGE);
    errno = 7;
    HOLDS(varve_mcolor(start, 0, VARVE_HOT) == 0);
    HOLDS(varve_mcolor((void *)0, 0, VARVE_COLD) == 0);
    HOLDS(varve_mcolor(start + 1, PAGE, VARVE_HOT) == 0);
    HOLDS(varve_mcolor(start + 1, 3 * PAGE, VARVE_HOT) == 0);
    HOLDS(varve_mcolor(start, 8 * PAGE, VARVE_COLD) == 0);
    HOLDS(varve_mcolor((void *)(UINTPTR_MAX - 100), 100, VARVE_HOT) == 0);
    HOLDS(errno == 7);
    HOLDS(varve_mcolor(start, PAGE, (enum varve_color)2) == -1 && errno == EINVAL);
    HOLDS(varve_mcolor(start, SIZE_MAX, VARVE_HOT) == -1 && errno == EINVAL);
    HOLDS(munmap(start + 4 * PAGE, PAGE) == 0);
    HOLDS(varve_mcolor(start, 8 * PAGE, VARVE_HOT) == -1 && errno == ENOMEM);
    HOLDS(varve_mcolor(start, 4 * PAGE, VARVE_HOT) == 0);
    void *block = varve_malloc(100, VARVE_SLOW);
    HOLDS(block);
    varve_free(block);
#ifdef NAMES
    HOLDS(strcmp(named, " varve-hot=2 varve-cold=8 varve-hot=4") == 0);
#endif
    return puts("as documented"), 0;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "apart";
    if (!strcmp(how, "errors")) return errors();
    int asked = !strcmp(how, "asked"), blocks = !strcmp(how, "blocks"), later = !strcmp(how, "later");
    char *archive, *table;
    if (asked) {
        archive = (char *)varve_malloc(ARCHIVE, VARVE_SLOW), table = (char *)varve_malloc(TABLE, VARVE_FAST);
    } else if (blocks) {
        archive = (char *)malloc(ARCHIVE), table = (char *)malloc(TABLE);
    } else {
        archive = mapping(ARCHIVE), table = mapping(TABLE);
    }
    if (later) memset(archive, 1, ARCHIVE), memset(table, 1, TABLE);
    if (!asked && varve_mcolor(archive, ARCHIVE, VARVE_COLD) + varve_mcolor(table, TABLE, VARVE_HOT)) return 2;
    if (!later) memset(archive, 1, ARCHIVE), memset(table, 1, TABLE);
    unsigned long at = 1, sum = 0;
    for (int i = 0; i < 300000; i++) {
        at = at * 6364136223846793005UL + 1442695040888963407UL;
        sum += (unsigned char)table[(at >> 20) % TABLE];
    }
    if (!strcmp(how, "changes")) {
        if (varve_mcolor(table, TABLE / 2, VARVE_COLD) || table[0] != 1) return 3;
        munmap(table + TABLE / 4, TABLE / 2);
    }
    return sum == 300000 ? 0 : 4;
}
