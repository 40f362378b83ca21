// A B+ tree on libpmemobj under the workloads of YCSB: see bench/stores.
//
//   pmem POOL WORKLOAD RECORDS OPERATIONS VALUE-BYTES
//
// Every write is a transaction of the library. What that means for a crash is the library's: with PMEM_IS_PMEM_FORCE=1 it writes cache lines back and
// fences, on any file; without, on an ordinary file, it calls msync. Prints a line of JSON.

#include <libpmemobj.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY_BYTES 24
#define SLOTS 32

POBJ_LAYOUT_BEGIN(stores);
POBJ_LAYOUT_ROOT(stores, struct root);
POBJ_LAYOUT_TOID(stores, struct node);
POBJ_LAYOUT_TOID(stores, char);
POBJ_LAYOUT_END(stores);

struct slot {
    char key[KEY_BYTES];
    PMEMoid what; // a value in a leaf, a node elsewhere
    uint32_t bytes;
};

// In a node that is no leaf, the key of a slot is the least below it; that of the first slot does not count.
struct node {
    uint32_t leaf, count;
    struct slot slots[SLOTS];
};

struct root {
    TOID(struct node) top;
};

static PMEMobjpool *pool;
static TOID(struct root) root;

// The last slot whose key is not greater; -1 if all are. With `inner`, the first one at least.
static int find(const struct node *n, const char *key, int inner) {
    int low = inner ? 1 : 0, high = (int)n->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (memcmp(n->slots[middle].key, key, KEY_BYTES) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static const struct slot *lookup(const char *key) {
    const struct node *n = D_RO(D_RO(root)->top);
    while (!n->leaf)
        n = pmemobj_direct(n->slots[find(n, key, 1)].what);
    int at = find(n, key, 0);
    return at >= 0 && memcmp(n->slots[at].key, key, KEY_BYTES) == 0 ? &n->slots[at] : NULL;
}

// Within a transaction, as all that follows.
static void insert_slot(TOID(struct node) n, int at, const struct slot *s) {
    pmemobj_tx_add_range(n.oid, 0, sizeof(struct node));
    struct node *w = D_RW(n);
    memmove(&w->slots[at + 1], &w->slots[at], (w->count - at) * sizeof(struct slot));
    w->slots[at] = *s;
    w->count++;
}

// Makes the upper half of the child at `at` a node of its own.
static void split(TOID(struct node) parent, int at) {
    TOID(struct node) child;
    TOID_ASSIGN(child, D_RO(parent)->slots[at].what);
    TOID(struct node) right = TX_ZNEW(struct node);
    pmemobj_tx_add_range(child.oid, 0, sizeof(struct node));
    struct node *l = D_RW(child), *r = D_RW(right);
    uint32_t kept = l->count / 2;
    r->leaf = l->leaf;
    r->count = l->count - kept;
    memcpy(r->slots, &l->slots[kept], r->count * sizeof(struct slot));
    l->count = kept;
    struct slot s = {.what = right.oid};
    memcpy(s.key, r->slots[0].key, KEY_BYTES);
    insert_slot(parent, at + 1, &s);
}

static void put(const char *key, const char *value, uint32_t bytes) {
    TX_BEGIN(pool) {
        TOID(char) copy = TX_ALLOC(char, bytes);
        memcpy(D_RW(copy), value, bytes);
        struct slot s = {.what = copy.oid, .bytes = bytes};
        memcpy(s.key, key, KEY_BYTES);
        struct slot *there = (struct slot *)lookup(key);
        if (there) {
            pmemobj_tx_add_range_direct(&there->what, sizeof(PMEMoid) + sizeof(uint32_t));
            pmemobj_tx_free(there->what);
            there->what = copy.oid;
            there->bytes = bytes;
        } else {
            TOID(struct node) n = D_RO(root)->top;
            if (D_RO(n)->count == SLOTS) {
                TOID(struct node) above = TX_ZNEW(struct node);
                D_RW(above)->count = 1;
                D_RW(above)->slots[0].what = n.oid;
                split(above, 0);
                TX_ADD(root);
                D_RW(root)->top = n = above;
            }
            while (!D_RO(n)->leaf) {
                int at = find(D_RO(n), key, 1);
                const struct node *child = pmemobj_direct(D_RO(n)->slots[at].what);
                if (child->count == SLOTS) {
                    split(n, at);
                    at = find(D_RO(n), key, 1);
                }
                TOID_ASSIGN(n, D_RO(n)->slots[at].what);
            }
            insert_slot(n, find(D_RO(n), key, 0) + 1, &s);
        }
    } TX_ONABORT {
        fprintf(stderr, "a transaction was aborted: %s\n", pmemobj_errormsg());
        exit(1);
    } TX_END
}

// ---- what YCSB draws

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double real(void) { return (double)(draw() >> 11) / (double)(1ull << 53); }

#define THETA 0.99

static double zeta(uint64_t from, uint64_t to) {
    double sum = 0;
    for (uint64_t i = from; i < to; i++)
        sum += pow((double)(i + 1), -THETA);
    return sum;
}

static uint64_t zipfian(double items, double zetan) {
    double u = real(), uz = u * zetan;
    if (uz < 1)
        return 0;
    if (uz < 1 + pow(0.5, THETA))
        return 1;
    double eta = (1 - pow(2 / items, 1 - THETA)) / (1 - zeta(0, 2) / zetan);
    return (uint64_t)(items * pow(eta * u - eta + 1, 1 / (1 - THETA)));
}

static uint64_t hash(uint64_t number) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (int i = 0; i < 8; i++, number >>= 8)
        h = (h ^ (number & 255)) * 1099511628211ull;
    return (int64_t)h < 0 ? -h : h;
}

static void key_of(uint64_t number, char *key) {
    memset(key, 0, KEY_BYTES);
    char text[32];
    int length = snprintf(text, sizeof text, "user%llu", (unsigned long long)hash(number));
    memcpy(key, text, (size_t)(length < KEY_BYTES ? length : KEY_BYTES));
}

static void value_of(uint64_t number, uint64_t version, char *value, uint32_t bytes) {
    uint64_t s = hash(number) ^ version * 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < bytes; i++) {
        if (i % 8 == 0) {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
        }
        value[i] = (char)(' ' + (s >> 8 * (i % 8) & 255) % 95);
    }
}

int main(int count, char **args) {
    if (count != 6) {
        fprintf(stderr, "usage: pmem POOL WORKLOAD RECORDS OPERATIONS VALUE-BYTES\n");
        return 2;
    }
    char workload = args[2][0];
    uint64_t records = strtoull(args[3], 0, 10), operations = strtoull(args[4], 0, 10);
    uint32_t bytes = (uint32_t)strtoul(args[5], 0, 10);
    uint64_t size = (records + operations / 10 + 1000) * (bytes + 400) + (64ull << 20);
    pool = pmemobj_create(args[1], POBJ_LAYOUT_NAME(stores), size, 0600);
    if (!pool) {
        fprintf(stderr, "%s: %s\n", args[1], pmemobj_errormsg());
        return 1;
    }
    root = POBJ_ROOT(pool, struct root);
    TX_BEGIN(pool) {
        TX_ADD(root);
        D_RW(root)->top = TX_ZNEW(struct node);
        D_RW(D_RW(root)->top)->leaf = 1;
    } TX_END
    char key[KEY_BYTES], *value = malloc(bytes);
    for (uint64_t i = 0; i < records; i++) {
        key_of(i, key);
        value_of(i, 0, value, bytes);
        put(key, value, bytes);
    }
    double reads = workload == 'c' ? 1 : workload == 'a' || workload == 'f' ? 0.5 : 0.95;
    double zetan = workload == 'd' ? zeta(0, records - 1) : 26.46902820178302;
    uint64_t missed = 0, sum = 0, inserted = records;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t i = 1; i <= operations; i++) {
        int read = real() < reads;
        uint64_t number;
        if (workload != 'd') {
            number = hash(zipfian(1e10, zetan)) % records;
        } else if (read) {
            number = inserted - 1 - zipfian((double)(inserted - 1), zetan);
        } else {
            zetan += zeta(inserted - 1, inserted);
            number = inserted++;
        }
        key_of(number, key);
        if (read || workload == 'f') {
            const struct slot *s = lookup(key);
            if (!s)
                missed++;
            else
                for (const uint64_t *at = pmemobj_direct(s->what), *past = at + s->bytes / 8; at < past; at++)
                    sum ^= *at;
        }
        if (!read) {
            value_of(number, i, value, bytes);
            put(key, value, bytes);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("{\"operations\": %llu, \"missed\": %llu, \"seconds\": %.6f, \"sum\": %llu}\n", (unsigned long long)operations, (unsigned long long)missed, seconds,
           (unsigned long long)sum);
    pmemobj_close(pool);
    return 0;
}
