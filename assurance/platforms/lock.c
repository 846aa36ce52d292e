/* The lock of a secure generator, of src/secure.h, as src/_secure.pyx enters and leaves it: threads add to one number. */
#include "secure.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

enum { THREADS = 4, TIMES = 20000 };

static uint64_t lock, number;
static sem_t left; /* PyThread_type_lock is a semaphore on Linux */

static void enter(void)
{
    if (secure_try(&lock))
        return;
    while (!secure_try_awaited(&lock))
        sem_wait(&left);
}

static void leave(void)
{
    if (secure_free(&lock))
        sem_post(&left);
}

static void *add(void *unused)
{
    for (int i = 0; i < TIMES; i++) {
        enter();
        number++;
        if (i % 64 == 0)
            sched_yield(); /* so that others find it held */
        leave();
        if (i % 64 == 32)
            sched_yield(); /* and free */
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    sem_init(&left, 0, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu\n", (unsigned long)number);
    return number != THREADS * TIMES;
}
