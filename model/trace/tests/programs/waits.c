// One function waits for each load, the other reads in order: the same memory each.
#include <stdlib.h>

struct Node { struct Node *next; long value, others[6]; };

static inline struct Node *behind(struct Node *node) {
    return node->next;
}

__attribute__((noinline)) static long chase(struct Node *node, long steps) {
    long sum = 0;
    while (steps-- > 0) {
        sum += node->value;
        node = behind(node);
    }
    return sum;
}

__attribute__((noinline)) static long stream(const long *all, long count) {
    long sum = 0;
    for (long at = 0; at < count; at++)
        sum += all[at];
    return sum;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1 << 12;
    struct Node *nodes = calloc(count, sizeof *nodes);
    long *all = calloc(8 * count, sizeof *all);
    for (long at = 0; at < count; at++) // all of them, one after another: count is a power of two
        nodes[at].next = &nodes[(at * 1234565 + 7919) % count];
    return chase(nodes, count) + stream(all, 8 * count) != 0;
}
