/* arc4random, arc4random_buf, arc4random_uniform (glibc 2.36): random numbers from the kernel.

   They cannot fail: where the kernel has no random numbers, the process ends, as it does in
   glibc's own. libstdc++'s std::random_device uses the first. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void read_device(unsigned char *buffer, size_t count)
{
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        abort();
    while (count > 0) {
        ssize_t got = read(file, buffer, count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        buffer += got;
        count -= (size_t) got;
    }
    close(file);
}

void arc4random_buf(void *buffer, size_t count)
{
    int before = errno;
    unsigned char *next = buffer;
    while (count > 0) {
        long got = syscall(SYS_getrandom, next, count, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            read_device(next, count);
            break;
        }
        next += got;
        count -= (size_t) got;
    }
    errno = before;
}

uint32_t arc4random(void)
{
    uint32_t value;
    arc4random_buf(&value, sizeof value);
    return value;
}

uint32_t arc4random_uniform(uint32_t bound)
{
    if (bound < 2)
        return 0;
    /* The lowest 2^32 mod bound values are drawn again, so that each remainder is as likely. */
    uint32_t least = -bound % bound;
    for (;;) {
        uint32_t value = arc4random();
        if (value >= least)
            return value % bound;
    }
}
