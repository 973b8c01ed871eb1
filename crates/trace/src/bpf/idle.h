// Which waits are not for a lock: those of threads that sleep until there is work, and those until a socket takes more.
#pragma once

#include "accounts.h"

// Of include/uapi/linux/futex.h, without the flags that come with a command.
#define FUTEX_COMMAND 0x7f
#define FUTEX_WAIT_BITSET 9
// Of include/uapi/asm-generic/poll.h.
#define POLLIN_EVENT 0x1
#define POLLOUT_EVENT 0x4

// Of src/role.rs.
#define ROLE_CONNECTION 1
#define ROLE_REPLICATION 12

struct poll_request {
	int fd;
	short events;
	short found;
};

// Their numbers on this machine; NO_CALL where it has no such call.
const volatile __u16 call_of_poll = NO_CALL;
const volatile __u16 call_of_ppoll = NO_CALL;

// Whether a thread waits until its socket takes more of what it sends. Servers poll one socket at a time.
static __always_inline _Bool polls_to_send(struct account *a, struct pt_regs *regs)
{
	struct poll_request first = {};

	if (a->call != call_of_poll && a->call != call_of_ppoll)
		return 0;
	if (bpf_probe_read_user(&first, sizeof(first), (void *)SYSCALL_ARGUMENT(regs)))
		return 0;
	return (first.events & (POLLIN_EVENT | POLLOUT_EVENT)) == POLLOUT_EVENT;
}

// Whether a thread that waits for a futex has nothing to do. A mutex is waited for by another command than a condition. A request's wait
// for a condition may be one for a lock, such as a row's. Neither is idle. What is left is a thread that
// - waits on a condition in its own stack, as a thread pool's do between requests; nobody else's lock lies there;
// - works for connections, and has none: it waits for the next one;
// - works for no connection, and set itself a time at which it wakes up;
// - works for no connection, and waits for what it slept on before (see turned_out_idle).
// A replica's threads apply what others changed: their waits may be for locks.
static __always_inline _Bool is_idle(struct account *a, struct task_struct *task, struct pt_regs *regs)
{
	__u64 address, base;

	a->condition = 0;
	if (watched.programs || (SYSCALL_SECOND_ARGUMENT(regs) & FUTEX_COMMAND) != FUTEX_WAIT_BITSET)
		return 0;
	if (a->request == PICKED || a->request == SUSPENDED)
		return 0;
	address = SYSCALL_ARGUMENT(regs);
	base = THREAD_POINTER(task);
	if (address > STACK_POINTER(regs) && address < base)
		return 1;
	if (a->request != NONE || a->role == ROLE_REPLICATION)
		return 0;
	if (a->role == ROLE_CONNECTION || SYSCALL_FOURTH_ARGUMENT(regs))
		return 1;
	a->condition = address;
	return address == a->idle_condition;
}

// Whether a wait that ended after `ns` was idle all along, which its length shows. The thread's next one on the same condition is
// idle from its beginning.
static __always_inline _Bool turned_out_idle(struct account *a, __u64 ns)
{
	if (!is_idle_by_length(a, ns))
		return 0;
	a->idle_condition = a->condition;
	return 1;
}
