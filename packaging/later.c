// What glibc has only in versions after 2.28. packaging/zig-cc links it where the program calls it.

#define _GNU_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

// Since glibc 2.35. A kernel before 5.11 answers ENOSYS, as it does to glibc's own.
int epoll_pwait2(int epoll, struct epoll_event *events, int events_max, const struct timespec *timeout, const sigset_t *mask) {
	// The kernel's signal sets have 64 bits, glibc's have more.
	return (int)syscall(SYS_epoll_pwait2, epoll, events, events_max, timeout, mask, (size_t)8);
}
