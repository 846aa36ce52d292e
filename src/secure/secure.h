/* The buffer of a keystream that loops without the GIL read one word at a time. */
#ifndef DPFAST_SECURE_H
#define DPFAST_SECURE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The identity of a thread, below, and what is done at a fork were checked on these systems alone. */
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#elif defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#else
#error "no verified identity of threads on this system: two threads could draw the same words"
#endif
#ifdef __linux__
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14; the headers of older systems do not name it */
#endif
#endif

/* 64 KiB: large enough to hide the cost of entering Python for a refill, small enough to stay in the second-level cache. */
#define SECURE_WORDS 8192

typedef struct {
    uint64_t *words;             /* SECURE_WORDS words of keystream */
    size_t next;                 /* the first unused word; SECURE_WORDS if there is none */
    uint64_t generation;         /* secure_generation() when the key was drawn */
    void (*refill)(void *owner); /* takes the GIL; leaves at least one unused word and never fails */
    void *owner;
} secure_stream;

/* The number of forks between this process and the one that imported the module, and 1, in a page that Linux fills with
 * zeros in every child, also in one that the C library does not know of; 0 is a fork that was not counted yet. All memory
 * of the page is here, so that nothing else is lost. Written only in a child that has a single thread, or one that counts
 * an unknown fork while the others wait, so that no reader needs a barrier. */
static uint64_t secure_page[512] __attribute__((aligned(4096)));
#define secure_forks secure_page[0]
#define secure_counting secure_page[1] /* whether a thread counts an unknown fork */
static uint64_t secure_counted = 0;    /* the same number, which every child keeps */
/* The thread that forked, whose identity in the child is the same; 0 if it is not known. */
static uint64_t secure_forker = 0;
static uint64_t secure_oldest = 0; /* the number of forks before the first of its uninterrupted series of them */

/* The thread pointer identifies threads on the platforms where that was checked; on macOS it reads 0 in all of them. gcc
 * 10 says that it has this function for all processors, and refuses to compile it for x86. */
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_builtin) \
    && (defined(__clang__) || __GNUC__ > 10)
#if __has_builtin(__builtin_thread_pointer)
#define SECURE_THREAD_POINTER
#endif
#endif

/* Not 0: the address of what is private to the thread, which takes no call, or else its name. The lock of a generator
 * stands and falls with it: `python -m assurance.platforms.lock` replaces it by a constant, and threads draw together. */
static inline uint64_t secure_thread(void)
{
#if defined(_WIN32)
    return (uint64_t)GetCurrentThreadId();
#elif defined(SECURE_THREAD_POINTER)
    return (uint64_t)__builtin_thread_pointer();
#else
    return (uint64_t)pthread_self();
#endif
}

static void secure_forked(void)
{
    const uint64_t thread = secure_thread();
    if (thread != secure_forker)
        secure_oldest = secure_counted;
    secure_counted++;
    secure_forker = thread;
    __atomic_store_n(&secure_forks, secure_counted, __ATOMIC_RELEASE);
}

/* Whether this is the first thread of the process, as the thread that forked is in a child. */
static inline int secure_is_first(void)
{
#ifdef __linux__
    return syscall(SYS_gettid) == getpid();
#else
    return 1;
#endif
}

/* After a fork without the C library: the first thread that draws counts it. If that is not the thread that forked, whose
 * identity it does not know, every holder of a lock counts as present: waiting is safe, drawing together is not. */
static __attribute__((noinline)) uint64_t secure_unknown_fork(void)
{
    uint64_t forks;
    if (!__atomic_exchange_n(&secure_counting, 1, __ATOMIC_ACQ_REL)) {
        if (secure_is_first()) {
            secure_forked();
        } else {
            secure_forker = secure_oldest = 0;
            __atomic_store_n(&secure_forks, ++secure_counted, __ATOMIC_RELEASE);
        }
    }
    do
        forks = __atomic_load_n(&secure_forks, __ATOMIC_ACQUIRE);
    while (!forks);
    return forks;
}

/* Not 0. */
static inline uint64_t secure_generation(void)
{
    const uint64_t forks = __atomic_load_n(&secure_forks, __ATOMIC_RELAXED);
    return __builtin_expect(forks != 0, 1) ? forks : secure_unknown_fork();
}

/* Whether a thread that ran after so many forks is in this process, of a later generation, too. The identity alone does not
 * tell: a thread of a child, which may fork in turn, gets that of a thread of the parent. */
static inline int secure_survived(uint64_t thread, uint64_t generation)
{
    return thread && (thread == secure_forker || !secure_forker) && generation >= secure_oldest;
}

static inline uint64_t secure_load(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

static inline void secure_store(uint64_t *number, uint64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELEASE);
}

/* A lock without system calls where no thread waits: U. Drepper, Futexes are tricky (2011), mutex 2. A thread that finds it
 * held marks it as awaited and waits for a signal, which the next thread that leaves gives; then it tries again. */
enum { SECURE_FREE, SECURE_HELD, SECURE_AWAITED };

/* Under the lock of the interpreter, which all callers of the functions below hold where it has one, plain loads and stores
 * are enough: the exchanges of the processor take half of the time to enter and leave. */
#if defined(PY_VERSION_HEX) && !defined(Py_GIL_DISABLED)
static inline uint64_t secure_exchange(uint64_t *lock, uint64_t value, int order)
{
    const uint64_t before = *lock;
    (void)order;
    *lock = value;
    return before;
}
#else
#define secure_exchange __atomic_exchange_n
#endif

static inline int secure_try(uint64_t *lock)
{
#if defined(PY_VERSION_HEX) && !defined(Py_GIL_DISABLED)
    return *lock == SECURE_FREE && (*lock = SECURE_HELD, 1);
#else
    uint64_t expected = SECURE_FREE;
    return __atomic_compare_exchange_n(lock, &expected, SECURE_HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
#endif
}

/* Whether the lock was free, and is now held by this thread; it is awaited in any case. */
static inline int secure_try_awaited(uint64_t *lock)
{
    return secure_exchange(lock, SECURE_AWAITED, __ATOMIC_ACQUIRE) == SECURE_FREE;
}

/* Frees the lock; returns whether to signal. */
static inline int secure_free(uint64_t *lock)
{
    return secure_exchange(lock, SECURE_FREE, __ATOMIC_RELEASE) == SECURE_AWAITED;
}

/* Returns 0, or the error of pthread_atfork. A second interpreter in the process does not register again. Where the kernel
 * does not wipe the page (before Linux 4.14, or with pages that are not of 4 KiB) the handler is alone. */
static int secure_watch_forks(void)
{
    if (secure_counted)
        return 0;
#ifndef _WIN32
    int error = pthread_atfork(NULL, NULL, secure_forked);
    if (error)
        return error;
#endif
#ifdef __linux__
    madvise(secure_page, sizeof secure_page, MADV_WIPEONFORK);
#endif
    secure_counted = secure_forks = 1;
    return 0;
}

/* Whether OpenSSL has GCM in vectors of four blocks, faster than CTR, which it computes one block at a time: twice as fast
 * here, where elsewhere it takes 1.6 times as long. VAES, for which not every compiler asks, comes with VPCLMULQDQ. */
static inline int secure_gcm_is_fast(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return 0;
#endif
}

/* The compiler cannot drop a store through a volatile function pointer as a dead store. */
static void *(*const volatile secure_memset)(void *, int, size_t) = memset;

static inline void secure_wipe(void *memory, size_t size)
{
    secure_memset(memory, 0, size);
}

/* Both checks are made for every word: a child must never return a word of the parent's buffer. After an unknown fork the
 * number of forks is 0, which is no generation. */
static inline int secure_is_used(const secure_stream *stream)
{
    return (stream->next == SECURE_WORDS) | (stream->generation != secure_forks);
}

static inline double secure_fraction(uint64_t word)
{
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}

/* A word or double after a refill: functions by themselves, called in the last step, so that those below save nothing on
 * the stack before a word that is there. With this, and in one line of the cache of instructions, a double takes a third
 * less time. */
static __attribute__((noinline)) uint64_t secure_refilled(secure_stream *stream)
{
    stream->refill(stream->owner);
    return stream->words[stream->next++];
}

static __attribute__((noinline)) double secure_refilled_double(secure_stream *stream)
{
    return secure_fraction(secure_refilled(stream));
}

/* The four functions of a bitgen_t. */
static inline __attribute__((aligned(64))) uint64_t secure_uint64(void *state)
{
    secure_stream *stream = (secure_stream *)state;
    if (__builtin_expect(secure_is_used(stream), 0))
        return secure_refilled(stream);
    return stream->words[stream->next++];
}

/* The upper half of a fresh word: keeping the lower half would need a second buffer to discard after a fork. */
static inline uint32_t secure_uint32(void *state)
{
    return (uint32_t)(secure_uint64(state) >> 32);
}

static __attribute__((aligned(64))) double secure_double(void *state)
{
    secure_stream *stream = (secure_stream *)state;
    if (__builtin_expect(secure_is_used(stream), 0))
        return secure_refilled_double(stream);
    return secure_fraction(stream->words[stream->next++]);
}

/* The words that a loop receives when randomness is unavailable, until leaving the lock raises: a public sequence that
 * starts at 0. The words differ, because with equal words a rejection loop (such as numpy's integers(0, 6)) would never
 * end and the error would never be raised. */
static inline uint64_t secure_placeholders(uint64_t *words, uint64_t last)
{
    for (size_t i = 0; i < SECURE_WORDS; i++) {
        words[i] = last ^ (last >> 32);
        last += UINT64_C(0x9e3779b97f4a7c15);
    }
    return last;
}

#endif
