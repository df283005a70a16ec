/* A disk whose syncs take SYNC_DELAY_US microseconds longer: preloaded, it stands before the C library's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_first(void)
{
    const char *delay = getenv("SYNC_DELAY_US");
    if (delay)
        usleep((useconds_t)strtoul(delay, NULL, 10));
}

int fsync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_first();
    return next(fd);
}

int fdatasync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_first();
    return next(fd);
}
