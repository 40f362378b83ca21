// Objects of two sites: those of one are written all the time, those of the other never again. Ends with its input.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
  struct node *next;
  long values[7];
};

static struct node *volatile hot, *volatile cold;

__attribute__((noinline)) static struct node *make_hot(struct node *next) {
  struct node *node = malloc(sizeof *node);
  node->next = next;
  node->values[0] = 0;
  return node;
}

__attribute__((noinline)) static struct node *make_cold(struct node *next) {
  struct node *node = malloc(sizeof *node);
  node->next = next;
  node->values[0] = 0;
  return node;
}

int main(void) {
  for (int i = 0; i < 200000; i++)
    hot = make_hot(hot);
  for (int i = 0; i < 200000; i++)
    cold = make_cold(cold);
  printf("%d\n", getpid());
  fflush(stdout);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (poll(&input, 1, 0) == 0)
    for (struct node *node = hot; node; node = node->next)
      node->values[0]++;
  return 0;
}
