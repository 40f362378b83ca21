// Two objects, of one site each: a small one that is read and written all over again, and one four times as large that is filled once.
// Says where its memory is, as the kernel tells, and then where both are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static char *hot_part(size_t n) { return malloc(n); }
__attribute__((noinline)) static char *cold_part(size_t n) { return malloc(n); }
int main(int argc, char **argv) {
  size_t n = (argc > 1 ? atoi(argv[1]) : 1) * (size_t)1 << 20; long rounds = argc > 2 ? atol(argv[2]) : 8;
  char *hot = hot_part(n), *cold = cold_part(4 * n);
  memset(cold, 1, 4 * n);
  long sum = 0;
  for (long r = 0; r < rounds; r++)
    for (size_t i = 0; i < n; i += 64) { hot[(i * 7919) % n]++; sum += hot[i]; }
  FILE *maps = fopen("/proc/self/numa_maps", "r");
  int c; while (maps && (c = getc(maps)) != EOF) putchar(c);
  printf("%p %p %ld\n", (void *)hot, (void *)cold, sum);
  return 0;
}
