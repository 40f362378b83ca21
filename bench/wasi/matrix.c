// Products of matrices and a filter over bytes, which the compiler makes vectors of.
#include "rounds.h"

static void product(const float *restrict a, const float *restrict b, float *restrict c, int n) {
    memset(c, 0, n * n * sizeof *c);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            float f = a[i * n + k];
            for (int j = 0; j < n; j++) c[i * n + j] += f * b[k * n + j];
        }
}

static void filter(const uint8_t *restrict from, uint8_t *restrict to, int n) {
    for (int i = 1; i < n - 1; i++) to[i] = (from[i - 1] + 2 * from[i] + from[i + 1] + 2) >> 2;
}

static uint64_t work(int size) {
    int n = size;
    uint32_t state = 5;
    float *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = malloc(n * n * sizeof *c);
    for (int i = 0; i < n * n; i++) {
        a[i] = (int)(next(&state) % 17) - 8;
        b[i] = (int)(next(&state) % 17) - 8;
    }
    product(a, b, c, n);
    uint64_t sum = 0;
    for (int i = 0; i < n * n; i++) sum = sum * 31 + (int64_t)c[i];
    int bytes = 64 * n * n / 4;
    uint8_t *x = malloc(bytes), *y = malloc(bytes);
    for (int i = 0; i < bytes; i++) x[i] = y[i] = i * 7;
    for (int i = 0; i < 8; i++) {
        filter(x, y, bytes);
        filter(y, x, bytes);
    }
    for (int i = 0; i < bytes; i++) sum = sum * 31 + x[i];
    free(a), free(b), free(c), free(x), free(y);
    return sum;
}
