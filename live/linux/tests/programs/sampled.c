// Memory of several sites, from several threads and a child, all of it in use for a thousand rounds. The child's rounds are counted,
// since a busy host may let it wait: what is seen of it depends on how long it runs, not on how long it is there.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS = 4, KEPT = 50000, ROUNDS = 1000, CHILD_ROUNDS = 4000 };

__attribute__((noinline)) static void *keep(void) { return calloc(1, 96); }
__attribute__((noinline)) static void *churn(size_t bytes) { return malloc(bytes); }
__attribute__((noinline)) static void *grow(void *old, size_t bytes) { return realloc(old, bytes); }
__attribute__((noinline)) static char *map(size_t bytes) {
  return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
__attribute__((noinline)) static void *in_child(size_t bytes) { return malloc(bytes); }

static void *volatile kept[THREADS][KEPT];
static pthread_barrier_t made;

static void *work(void *number) {
  void *volatile *own = kept[(long)number];
  for (int i = 0; i < KEPT; i++) {
    own[i] = keep();
    char *passing = churn(1 + i % 3000);
    *passing = 1;
    free(passing);
  }
  pthread_barrier_wait(&made);
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&made, 0, THREADS + 1);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, work, (void *)i);
  pthread_barrier_wait(&made);
  char *large = 0;
  for (size_t bytes = 1 << 20; bytes <= 16 << 20; bytes *= 2) {
    large = grow(large, bytes);
    memset(large, 1, bytes);
  }
  char *mapped = map(8 << 20);
  volatile int *rounds = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char *own = in_child(4 << 20);
    for (;; ++*rounds)
      memset(own, 1, 4 << 20);
  }
  for (int round = 0; round < ROUNDS || *rounds < CHILD_ROUNDS; round++) {
    if (waitpid(child, 0, WNOHANG) != 0)
      return 1;
    memset(mapped, 1, 8 << 20);
    for (size_t i = 0; i < 16 << 20; i += 4096)
      *(volatile char *)(large + i);
  }
}
