// Makes a server slower by known factors: its storage, and the work of its statements.
//
// A server loads this before its own libraries. WHYSO_SPEEDS names a file with two numbers of 32 bits, which may change at any time. Both are
// thousandths of a call's or a statement's own time that are added to it:
//
//   storage   each call that reads, writes or syncs a file takes as much longer, asleep. What goes to storage without these calls, such as
//             asynchronous writes, is not slowed.
//   work      before a thread sends, it computes as much longer as the CPU time that it used since it last sent. So work takes longer, and waits do not.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Less than this is owed until more comes together: a sleep takes some of it by itself.
#define SLEEP_NS_MIN 50000
// A sleep that was too long is made up for by the next calls, up to this.
#define CREDIT_NS_MAX 1000000
#define NS_PER_S 1000000000

struct speeds {
	uint32_t storage;
	uint32_t work;
};

static struct speeds full_speed;
static struct speeds *added = &full_speed;

static __thread int64_t owed_ns;
static __thread int is_precise;
// CPU time of the thread when it last sent; 0 where work was not slowed then.
static __thread int64_t sent_at_ns;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("WHYSO_SPEEDS");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (file < 0)
		return;
	void *page = mmap(NULL, sizeof *added, PROT_READ, MAP_SHARED, file, 0);

	close(file);
	if (page != MAP_FAILED)
		added = page;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_off(int64_t more_ns)
{
	owed_ns += more_ns;
	if (owed_ns < SLEEP_NS_MIN)
		return;
	if (!is_precise) {
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
		is_precise = 1;
	}
	struct timespec length = { owed_ns / NS_PER_S, owed_ns % NS_PER_S };
	int64_t begin_ns = now_ns(CLOCK_MONOTONIC);

	nanosleep(&length, NULL);
	owed_ns -= now_ns(CLOCK_MONOTONIC) - begin_ns;
	if (owed_ns < -CREDIT_NS_MAX)
		owed_ns = -CREDIT_NS_MAX;
}

static void compute_longer(void)
{
	uint32_t thousandths = __atomic_load_n(&added->work, __ATOMIC_RELAXED);

	if (thousandths == 0) {
		sent_at_ns = 0;
		return;
	}
	int64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

	if (sent_at_ns) {
		int64_t until_ns = cpu_ns + (cpu_ns - sent_at_ns) * thousandths / 1000;

		while (cpu_ns < until_ns)
			cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	sent_at_ns = cpu_ns;
}

#define SLOWED(type, call)                                                                \
	do {                                                                              \
		uint32_t thousandths = __atomic_load_n(&added->storage, __ATOMIC_RELAXED); \
		if (thousandths == 0)                                                     \
			return (type)(call);                                              \
		int64_t begin_ns = now_ns(CLOCK_MONOTONIC);                               \
		type result = (type)(call);                                               \
		int error = errno;                                                        \
		sleep_off((now_ns(CLOCK_MONOTONIC) - begin_ns) * thousandths / 1000);     \
		errno = error;                                                            \
		return result;                                                            \
	} while (0)

ssize_t pread(int file, void *to, size_t size, off_t at)
{
	SLOWED(ssize_t, syscall(SYS_pread64, file, to, size, at));
}

ssize_t pread64(int file, void *to, size_t size, off64_t at)
{
	SLOWED(ssize_t, syscall(SYS_pread64, file, to, size, at));
}

ssize_t pwrite(int file, const void *from, size_t size, off_t at)
{
	SLOWED(ssize_t, syscall(SYS_pwrite64, file, from, size, at));
}

ssize_t pwrite64(int file, const void *from, size_t size, off64_t at)
{
	SLOWED(ssize_t, syscall(SYS_pwrite64, file, from, size, at));
}

int fsync(int file)
{
	SLOWED(int, syscall(SYS_fsync, file));
}

int fdatasync(int file)
{
	SLOWED(int, syscall(SYS_fdatasync, file));
}

ssize_t send(int socket, const void *from, size_t size, int flags)
{
	compute_longer();
	return (ssize_t)syscall(SYS_sendto, socket, from, size, flags, NULL, 0);
}
