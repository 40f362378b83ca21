// Writes 1000 numbers before, 2000 between, and 4000 after its marks, with a second thread that lives all the time.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

volatile uint64_t before[1000], between[2000], after[4000];

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t other[500];

static void *second(void *none) {
    (void)none;
    pthread_mutex_lock(&turn); // until the marks are set
    for (int i = 0; i < 500; i++)
        other[i] = i;
    pthread_mutex_unlock(&turn);
    return 0;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&turn);
    pthread_create(&thread, 0, second, 0);
    for (int i = 0; i < 1000; i++)
        before[i] = i;
    access("/varve/record/begin", F_OK);
    for (int i = 0; i < 2000; i++)
        between[i] = i;
    pthread_mutex_unlock(&turn);
    pthread_join(thread, 0);
    access("/varve/record/end", F_OK);
    for (int i = 0; i < 4000; i++)
        after[i] = i;
    printf("%p %p %p %p\n", (void *)before, (void *)between, (void *)after, (void *)other);
    return 0;
}
