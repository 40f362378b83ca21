/* Four threads add to their own array, one after the other, as the main thread signals them; then all at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, WORDS = 20000 };
static long *arrays[THREADS];

static long *make_array(void) { return calloc(WORDS, sizeof(long)); }

static void *work(void *argument) {
    long *array = argument;
    for (int round = 0; round < 5; round++)
        for (long i = 0; i < WORDS; i++) array[i] += i;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    long sum = 0;
    for (int i = 0; i < THREADS; i++) arrays[i] = make_array();
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, arrays[i]);
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, arrays[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        for (long j = 0; j < WORDS; j++) sum += arrays[i][j];
        free(arrays[i]);
    }
    return sum == 10L * THREADS * WORDS * (WORDS - 1) / 2 ? 7 : 1;
}
