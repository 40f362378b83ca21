// Records sorted by the library's qsort, which calls the comparison through a pointer; numbers by a quicksort.
#include "rounds.h"

typedef struct {
    uint32_t key;
    char name[12];
} record;

static int by_key(const void *a, const void *b) {
    const record *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : strcmp(x->name, y->name);
}

static void quicksort(uint32_t *a, int n) {
    while (n > 12) {
        uint32_t pivot = a[n / 2];
        int i = 0, j = n - 1;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) {
                uint32_t t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
        }
        quicksort(a, j + 1);
        a += i;
        n -= i;
    }
    for (int i = 1; i < n; i++) {
        uint32_t v = a[i];
        int j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

static uint64_t work(int size) {
    uint32_t state = 12345;
    record *records = malloc(size * sizeof *records);
    uint32_t *numbers = malloc(8 * size * sizeof *numbers);
    for (int i = 0; i < size; i++) {
        records[i].key = next(&state) % (size / 4 + 1);
        snprintf(records[i].name, sizeof records[i].name, "r%u", next(&state) % 100000);
    }
    for (int i = 0; i < 8 * size; i++) numbers[i] = next(&state);
    qsort(records, size, sizeof *records, by_key);
    quicksort(numbers, 8 * size);
    uint64_t sum = 0;
    for (int i = 0; i < size; i++) sum = sum * 31 + records[i].key + records[i].name[1];
    for (int i = 0; i < 8 * size; i++) sum = sum * 31 + numbers[i];
    free(records);
    free(numbers);
    return sum;
}
