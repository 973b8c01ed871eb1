// Makes the storage of a server slower by a known factor. Each call that reads, writes or syncs a file takes as much longer, asleep.
//
// A server loads this before its own libraries. WHYSO_STORAGE_SPEED names a file with one number of 32 bits: thousandths of a call's own time that
// are added to it. It may change at any time. What goes to storage without these calls, such as asynchronous writes, is not slowed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Less than this is owed until more comes together: a sleep takes some of it by itself.
#define SLEEP_NS_MIN 50000
// A sleep that was too long is made up for by the next calls, up to this.
#define CREDIT_NS_MAX 1000000
#define NS_PER_S 1000000000

static uint32_t nothing;
static uint32_t *added = &nothing;
static __thread int64_t owed_ns;
static __thread int is_precise;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("WHYSO_STORAGE_SPEED");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (file < 0)
		return;
	void *page = mmap(NULL, sizeof *added, PROT_READ, MAP_SHARED, file, 0);

	close(file);
	if (page != MAP_FAILED)
		added = page;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
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
	int64_t begin_ns = now_ns();

	nanosleep(&length, NULL);
	owed_ns -= now_ns() - begin_ns;
	if (owed_ns < -CREDIT_NS_MAX)
		owed_ns = -CREDIT_NS_MAX;
}

#define SLOWED(type, call)                                                    \
	do {                                                                  \
		uint32_t thousandths = __atomic_load_n(added, __ATOMIC_RELAXED); \
		if (thousandths == 0)                                         \
			return (type)(call);                                  \
		int64_t begin_ns = now_ns();                                  \
		type result = (type)(call);                                   \
		int error = errno;                                            \
		sleep_off((now_ns() - begin_ns) * thousandths / 1000);        \
		errno = error;                                                \
		return result;                                                \
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
