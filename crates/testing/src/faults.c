// Fails the n-th call that changes files under a folder, or ends the process there.
//
// Loaded by LD_PRELOAD; set by the environment: FAULT_UNDER (the folder), FAULT_LOG (a line for each call that counts), FAULT_AT (which call;
// 0: none), FAULT_KIND (full, eio, dead or kill). Only the program that it is loaded into is concerned, not those that it starts.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// A removed file of this size makes room on a full disk.
#define ROOM_BYTES (1 << 20)

enum kind { NONE, FULL, EIO_ONCE, DEAD, KILL };

static char under[PATH_MAX];
static size_t under_length;
static int log_fd = -1;
static long at;
static enum kind kind;
static atomic_long calls;
static atomic_int is_full, is_dead, is_off = 1;

static void turn_off(void) { atomic_store(&is_off, 1); }

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("FAULT_UNDER"), *log = getenv("FAULT_LOG");
    if (!folder || !log || !realpath(folder, under)) return;
    under_length = strlen(under);
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    const char *name = getenv("FAULT_KIND") ? getenv("FAULT_KIND") : "";
    kind = !strcmp(name, "full") ? FULL : !strcmp(name, "eio") ? EIO_ONCE : !strcmp(name, "dead") ? DEAD
         : !strcmp(name, "kill") ? KILL : NONE;
    unsetenv("FAULT_UNDER");
    pthread_atfork(NULL, NULL, turn_off);
    atomic_store(&is_off, 0);
}

static int is_under(const char *path) {
    return !strncmp(path, under, under_length) && (path[under_length] == '/' || path[under_length] == 0);
}

static int name_of_fd(int fd, char *name) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, PATH_MAX - 1);
    if (length < 0) return 0;
    name[length] = 0;
    return 1;
}

static int name_of(int dir, const char *path, char *name) {
    char folder[PATH_MAX];
    if (path[0] == '/') {
        snprintf(name, PATH_MAX, "%s", path);
        return 1;
    }
    if (dir == AT_FDCWD ? !getcwd(folder, sizeof folder) : !name_of_fd(dir, folder)) return 0;
    return snprintf(name, PATH_MAX, "%s/%s", folder, path) < PATH_MAX;
}

// What becomes of a call. 0: it is carried out. -1: it fails with errno. 1: at this call the process ends or the disk becomes full.
static int judge(const char *what, const char *name, int takes_space) {
    if (atomic_load(&is_off) || !is_under(name)) return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s%s %s\n", what, takes_space ? "+" : "", name + under_length);
    if (log_fd >= 0) syscall(SYS_write, log_fd, line, length);
    if (number == at) {
        switch (kind) {
        case FULL: atomic_store(&is_full, 1); if (takes_space) return 1; break;
        case EIO_ONCE: errno = EIO; return -1;
        case DEAD: atomic_store(&is_dead, 1); break;
        case KILL: return 1;
        case NONE: break;
        }
    }
    if (atomic_load(&is_dead)) { errno = EIO; return -1; }
    if (takes_space && atomic_load(&is_full)) { errno = ENOSPC; return -1; }
    return 0;
}

static int end_or_fail(void) {
    if (kind == KILL) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = ENOSPC;
    return -1;
}

#define REAL(function) \
    static typeof(&function) real; \
    if (!real) real = dlsym(RTLD_NEXT, #function);
#define KEEP_ERRNO(call) ({ int saved_errno = errno; call; errno = saved_errno; })

static int judge_fd(const char *what, int fd, int takes_space) {
    char name[PATH_MAX];
    if (atomic_load(&is_off)) return 0;
    int saved_errno = errno;
    if (!name_of_fd(fd, name)) { errno = saved_errno; return 0; }
    errno = saved_errno;
    return judge(what, name, takes_space);
}

static int judge_path(const char *what, int dir, const char *path, int takes_space) {
    char name[PATH_MAX];
    if (atomic_load(&is_off) || !name_of(dir, path, name)) return 0;
    return judge(what, name, takes_space);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write)
    int verdict = judge_fd("write", fd, 1);
    if (verdict < 0) return -1;
    if (verdict > 0) {
        ssize_t half = length / 2 ? real(fd, bytes, length / 2) : 0;
        if (kind == KILL || half <= 0) return end_or_fail();
        return half;
    }
    return real(fd, bytes, length);
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    REAL(writev)
    int verdict = judge_fd("writev", fd, 1);
    if (verdict < 0) return -1;
    return verdict > 0 ? end_or_fail() : real(fd, pieces, count);
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t length, unsigned flags) {
    REAL(copy_file_range)
    int verdict = judge_fd("copy", out, 1);
    if (verdict < 0) return -1;
    return verdict > 0 ? end_or_fail() : real(in, in_at, out, out_at, length, flags);
}

#define OPEN(NAME, ARGUMENTS, DIR, ...) \
    int NAME ARGUMENTS { \
        REAL(NAME) \
        va_list rest; \
        va_start(rest, flags); \
        int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, int) : 0; \
        va_end(rest); \
        if ((flags & O_ACCMODE) != O_RDONLY) { \
            int verdict = judge_path("open", DIR, path, (flags & O_CREAT) && access(path, F_OK)); \
            if (verdict < 0) return -1; \
            if (verdict > 0) return end_or_fail(); \
        } \
        return real(__VA_ARGS__, flags, mode); \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(openat, (int dir, const char *path, int flags, ...), dir, dir, path)
OPEN(openat64, (int dir, const char *path, int flags, ...), dir, dir, path)

#define ON_FD(NAME, WHAT, ARGUMENTS, ...) \
    int NAME ARGUMENTS { \
        REAL(NAME) \
        int verdict = judge_fd(WHAT, fd, 0); \
        if (verdict < 0) return -1; \
        return verdict > 0 ? end_or_fail() : real(__VA_ARGS__); \
    }
ON_FD(fsync, "fsync", (int fd), fd)
ON_FD(fdatasync, "fdatasync", (int fd), fd)
ON_FD(ftruncate, "ftruncate", (int fd, off_t length), fd, length)
ON_FD(ftruncate64, "ftruncate", (int fd, off64_t length), fd, length)
ON_FD(futimens, "futimens", (int fd, const struct timespec times[2]), fd, times)

int rename(const char *from, const char *to) {
    REAL(rename)
    int verdict = judge_path("rename", AT_FDCWD, to, 0);
    if (verdict < 0) return -1;
    return verdict > 0 ? end_or_fail() : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir)
    int verdict = judge_path("mkdir", AT_FDCWD, path, access(path, F_OK) != 0);
    if (verdict < 0) return -1;
    return verdict > 0 ? end_or_fail() : real(path, mode);
}

static void make_room(int dir, const char *path) {
    struct stat about;
    KEEP_ERRNO(if (!fstatat(dir, path, &about, AT_SYMLINK_NOFOLLOW) && about.st_size >= ROOM_BYTES)
                   atomic_store(&is_full, 0));
}

int unlink(const char *path) {
    REAL(unlink)
    int verdict = judge_path("unlink", AT_FDCWD, path, 0);
    if (verdict < 0) return -1;
    if (verdict > 0) return end_or_fail();
    make_room(AT_FDCWD, path);
    return real(path);
}

int rmdir(const char *path) {
    REAL(rmdir)
    int verdict = judge_path("rmdir", AT_FDCWD, path, 0);
    if (verdict < 0) return -1;
    return verdict > 0 ? end_or_fail() : real(path);
}

int unlinkat(int dir, const char *path, int flags) {
    REAL(unlinkat)
    int verdict = judge_path("unlinkat", dir, path, 0);
    if (verdict < 0) return -1;
    if (verdict > 0) return end_or_fail();
    make_room(dir, path);
    return real(dir, path, flags);
}
