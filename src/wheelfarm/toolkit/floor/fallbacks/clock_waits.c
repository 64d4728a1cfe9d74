/* Waits until a time of a chosen clock (glibc 2.30): pthread_cond_clockwait,
   pthread_mutex_clocklock, pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock, sem_clockwait.

   libstdc++'s headers call them for std::condition_variable::wait_for, std::timed_mutex and the
   like, which wait on the steady clock. Where the running glibc has the function, it is used.
   An older glibc waits on the wall clock alone, so the time that is left is added to the wall
   clock's, a second at most, and the chosen clock is asked again after each of these waits: a wall
   clock that somebody sets can make a wait a second longer and never ends one too early. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define SECOND 1000000000L
/* Of a condition variable: it was made for the steady clock. In glibc 2.25 to 2.29 a bit of its
   tenth word (__wrefs), before that of its eleventh (__nwaiters), on all 64-bit systems. (From 2.41
   on it is the eighth, which tests say that run without that system's own functions.) */
#ifndef STEADY_WORD
#define STEADY_WORD 9
#endif
#define STEADY_BIT 2u
#define OLD_STEADY_WORD 10
#define OLD_STEADY_BIT 1u
#define FIRST_NEW_CONDITION 25

#ifdef FALLBACKS_ALONE /* tests of this file on a system that has the functions */
#define real_function(name) ((void *) 0)
#else
#define real_function(name) dlsym(RTLD_DEFAULT, name)
#endif

static int is_steady(const pthread_cond_t *condition)
{
    const unsigned *words = (const unsigned *) condition;
    int minor = atoi(gnu_get_libc_version() + sizeof "2");
    return minor < FIRST_NEW_CONDITION ? words[OLD_STEADY_WORD] & OLD_STEADY_BIT
                                       : words[STEADY_WORD] & STEADY_BIT;
}

static int is_valid(clockid_t clock, const struct timespec *limit)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)
        && limit->tv_nsec >= 0 && limit->tv_nsec < SECOND;
}

/* Write when `own` shows the time that `clock` shows at `limit`, at most a second from now.
   Return whether `limit` is over. */
static int translate(clockid_t clock, const struct timespec *limit, clockid_t own,
                     struct timespec *result)
{
    struct timespec now;
    clock_gettime(clock, &now);
    long seconds = limit->tv_sec - now.tv_sec;
    long nanoseconds = limit->tv_nsec - now.tv_nsec;
    if (nanoseconds < 0) {
        nanoseconds += SECOND;
        seconds -= 1;
    }
    int over = seconds < 0 || (seconds == 0 && nanoseconds == 0);
    if (over)
        seconds = nanoseconds = 0;
    else if (seconds >= 1) {
        seconds = 1;
        nanoseconds = 0;
    }
    clock_gettime(own, result);
    result->tv_sec += seconds;
    result->tv_nsec += nanoseconds;
    if (result->tv_nsec >= SECOND) {
        result->tv_nsec -= SECOND;
        result->tv_sec += 1;
    }
    return over;
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *limit)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *) =
        real_function("pthread_cond_clockwait");
    if (real)
        return real(condition, mutex, clock, limit);
    if (!is_valid(clock, limit))
        return EINVAL;
    clockid_t own = is_steady(condition) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    if (clock == own)
        return pthread_cond_timedwait(condition, mutex, limit);
    for (;;) {
        struct timespec until;
        int over = translate(clock, limit, own, &until);
        int status = pthread_cond_timedwait(condition, mutex, &until);
        if (status != ETIMEDOUT || over)
            return status;
    }
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *limit)
{
    int (*real)(pthread_mutex_t *, clockid_t, const struct timespec *) =
        real_function("pthread_mutex_clocklock");
    if (real)
        return real(mutex, clock, limit);
    if (clock == CLOCK_REALTIME)
        return pthread_mutex_timedlock(mutex, limit);
    if (!is_valid(clock, limit)) {
        int status = pthread_mutex_trylock(mutex);
        return status == EBUSY ? EINVAL : status;
    }
    for (;;) {
        struct timespec until;
        int over = translate(clock, limit, CLOCK_REALTIME, &until);
        int status = pthread_mutex_timedlock(mutex, &until);
        if (status != ETIMEDOUT || over)
            return status;
    }
}

typedef int (*timed_lock)(pthread_rwlock_t *, const struct timespec *);

static int wait_for_lock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *limit,
                         timed_lock timed)
{
    if (!is_valid(clock, limit))
        return EINVAL;
    if (clock == CLOCK_REALTIME)
        return timed(lock, limit);
    for (;;) {
        struct timespec until;
        int over = translate(clock, limit, CLOCK_REALTIME, &until);
        int status = timed(lock, &until);
        if (status != ETIMEDOUT || over)
            return status;
    }
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                               const struct timespec *limit)
{
    int (*real)(pthread_rwlock_t *, clockid_t, const struct timespec *) =
        real_function("pthread_rwlock_clockrdlock");
    return real ? real(lock, clock, limit)
                : wait_for_lock(lock, clock, limit, pthread_rwlock_timedrdlock);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                               const struct timespec *limit)
{
    int (*real)(pthread_rwlock_t *, clockid_t, const struct timespec *) =
        real_function("pthread_rwlock_clockwrlock");
    return real ? real(lock, clock, limit)
                : wait_for_lock(lock, clock, limit, pthread_rwlock_timedwrlock);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *limit)
{
    int (*real)(sem_t *, clockid_t, const struct timespec *) = real_function("sem_clockwait");
    if (real)
        return real(semaphore, clock, limit);
    if (clock == CLOCK_REALTIME)
        return sem_timedwait(semaphore, limit);
    if (!is_valid(clock, limit)) {
        errno = EINVAL;
        return -1;
    }
    for (;;) {
        struct timespec until;
        int over = translate(clock, limit, CLOCK_REALTIME, &until);
        int status = sem_timedwait(semaphore, &until);
        if (status == 0 || errno != ETIMEDOUT || over)
            return status;
    }
}
