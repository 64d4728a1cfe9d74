/* gettid, tgkill, getdents64 (glibc 2.30), getcpu (2.29), close_range and closefrom (2.34):
   names for what the kernel does.

   close_range answers ENOSYS before Linux 5.9, as glibc's own does there. closefrom cannot fail:
   on such a kernel the descriptors that /proc names are closed, and all possible ones without
   /proc. */

#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

pid_t gettid(void)
{
    return (pid_t) syscall(SYS_gettid);
}

int tgkill(pid_t process, pid_t thread, int signal)
{
    return (int) syscall(SYS_tgkill, process, thread, signal);
}

ssize_t getdents64(int file, void *buffer, size_t size)
{
    return syscall(SYS_getdents64, file, buffer, size);
}

int getcpu(unsigned int *cpu, unsigned int *node)
{
    return (int) syscall(SYS_getcpu, cpu, node, (void *) 0);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
    return (int) syscall(SYS_close_range, first, last, flags);
}

void closefrom(int first)
{
    if (first < 0)
        first = 0;
    if (close_range((unsigned int) first, ~0u, 0) == 0)
        return;
    DIR *folder = opendir("/proc/self/fd");
    if (folder) {
        struct dirent *entry;
        while ((entry = readdir(folder))) {
            int file = atoi(entry->d_name);
            if (entry->d_name[0] != '.' && file >= first && file != dirfd(folder))
                close(file);
        }
        closedir(folder);
        return;
    }
    struct rlimit limit = {0, 0};
    int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20
        ? (int) limit.rlim_cur : 1 << 20;
    for (int file = first; file < most; file++)
        close(file);
}
