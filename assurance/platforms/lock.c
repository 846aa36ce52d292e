/* The lock of a secure generator, of src/secure/secure.h, as src/secure/_secure.pyx enters and leaves it: threads add to one
 * number. With REENTRANT a thread enters again the lock that it holds, as it knows by its identity. */
#include "secure.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

enum { THREADS = 4, TIMES = 20000 };

static uint64_t lock, holder, depth, number;
static sem_t left; /* PyThread_type_lock is a semaphore on Linux */

static void enter(void)
{
#ifdef REENTRANT
    const uint64_t thread = secure_thread();
    if (secure_load(&holder) == thread) {
        depth++;
        return;
    }
#endif
    if (!secure_try(&lock))
        while (!secure_try_awaited(&lock))
            sem_wait(&left);
#ifdef REENTRANT
    depth = 1;
    secure_store(&holder, thread);
#endif
}

static void leave(void)
{
#ifdef REENTRANT
    if (--depth)
        return;
    secure_store(&holder, 0);
#endif
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
