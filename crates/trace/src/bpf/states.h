// Where a thread's time goes, by the scheduler's switches.
#pragma once

#include "accounts.h"
#include "files.h"
#include "idle.h"
#include "pauses.h"
#include "upstream.h"

#define PF_IO_WORKER 0x10

// What a thread is in when it blocks inside a system call, by its number.
const volatile __u8 state_of_syscall[SYSCALLS_MAX];

static __always_inline void enter(struct account *a, __u8 state, __u64 ns)
{
	if (state >= STATES)
		return;
	a->time[state].sum += ns;
	a->entered |= 1 << state;
}

// The thread runs: what it ran since is its CPU time.
static __always_inline void up_to(struct account *a, __u64 now)
{
	if (now > a->since_ns && a->state == CPU)
		enter(a, CPU, now - a->since_ns);
	a->since_ns = now;
}

static __always_inline void state_to_edge(struct account *a, __u8 state, __u8 whose)
{
	struct time *time = &a->time[state];

	if (whose == OF_LOAD)
		time->in_requests[0] += time->sum - time->mark;
	else if (whose == OF_OTHERS)
		time->in_requests[1] += time->sum - time->mark;
	time->mark = time->sum;
}

// An edge of a request: what was entered since the last one was within a request (of the load or of others), or was not.
static __always_inline void to_edge(struct account *a, __u8 whose)
{
	__u16 entered = a->entered;

	a->entered = 0;
	// Most often it only ran.
	if (entered & 1 << CPU)
		state_to_edge(a, CPU, whose);
	if (!(entered & ~(1 << CPU)))
		return;
#pragma unroll
	for (int state = CPU + 1; state < STATES; state++) {
		if (entered & 1 << state)
			state_to_edge(a, state, whose);
	}
}

static __always_inline void to_edge_in_request(struct account *a)
{
	to_edge(a, a->whose);
}

static __always_inline void to_edge_outside(struct account *a)
{
	to_edge(a, OF_OWN);
}

// Where the requests are counted that the thread works for now, which are not our own.
static __always_inline struct served *served_by(struct account *a)
{
	return a->whose == OF_OTHERS ? &a->served[1] : &a->served[0];
}

// How much of the last time that the thread was ready and did not run lies after `from`.
static __always_inline __u64 ready_after(struct account *a, __u64 from)
{
	if (from < a->ready_ns)
		from = a->ready_ns;
	return a->ran_ns > from ? a->ran_ns - from : 0;
}

// What a thread that leaves its CPU waits for.
static __always_inline __u8 blocked_in(struct account *a, struct task_struct *task)
{
	struct pt_regs *regs;
	long number;
	__u8 state;

	a->file_inode = 0;
	a->call = NO_CALL;
	// It has no system call of its own.
	if (task->flags & PF_IO_WORKER)
		return AIO;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	number = SYSCALL_NUMBER(regs);
	if (number < 0 || number >= SYSCALLS_MAX)
		state = PAGE_FAULT;
	else
		state = state_of_syscall[a->call = number];
	if (state == LOCK && is_idle(a, task, regs))
		state = IDLE;
	else if (state == NET_RECEIVE && polls_to_send(a, regs))
		state = NET_SEND;
	if (state == FILE_READ || state == FILE_WRITE || state == FILE_SYNC)
		state = note_file(a, task, SYSCALL_ARGUMENT(regs), state);
	if (!a->contended)
		return state;
	// The lock's own file, where it has one: that of a folder is waited for in calls without a descriptor.
	if (a->lock_inode) {
		a->file_inode = a->lock_inode;
		a->file_device = a->lock_device;
	}
	return KERNEL_LOCK;
}

static __always_inline void take_cpu(struct account *a, _Bool was_idle, __u64 now)
{
	__u64 ready = a->since_ns, waking = ONCE(a->waking_ns);
	__u8 state;

	begin_write(a);
	if (now < a->since_ns) {
		__sync_fetch_and_add(&lost.clock, 1);
		now = a->since_ns;
	}
	if (waking > now)
		waking = now;
	if (waking > ready && turned_out_idle(a, waking - ready)) {
		a->state = IDLE;
		correct_past(a, IDLE);
	}
	state = a->state;
	if (now - a->since_ns >= PAUSE_MIN_NS)
		enter_pause(a, now);
	if (state == CPU) {
		// Opened just now; or it left its CPU unseen, and nobody knows for what.
		enter(a, OTHER, now - ready);
		ready = now;
	} else if (state != RUNQUEUE) {
		// Otherwise it was woken before it had left its CPU: it never waited.
		if (waking > ready) {
			enter(a, state, waking - ready);
			if (watched.programs)
				enter_upstream_wait(a, state, waking - ready);
			if (a->file_inode && state != NET_RECEIVE)
				enter_file_wait(a, state, waking - ready);
			ready = waking;
		}
	}
	enter(a, state != RUNQUEUE && was_idle ? WAKEUP : RUNQUEUE, now - ready);
	// Where it was put off its CPU it has been ready since then, which is remembered.
	if (state != RUNQUEUE && now > ready)
		remember(a, was_idle ? WAKEUP : RUNQUEUE, ready);
	remember(a, CPU, now);
	a->ready_ns = ready;
	a->ran_ns = now;
	a->ready_idle = state != RUNQUEUE && was_idle;
	a->state = CPU;
	a->since_ns = now;
	end_write(a);
}

// The thread runs now, and took its CPU unseen (see leave_cpu): since when, nobody knows.
static __noinline void took_unseen(struct account *a, __u64 now)
{
	take_cpu(a, 0, now);
}

// Begins to write the account of the thread that runs, with all that it ran up to now.
static __always_inline void begin_running(struct account *a, __u64 now)
{
	if (a->state != CPU)
		took_unseen(a, now);
	begin_write(a);
	up_to(a, now);
}

static __always_inline void leave_cpu(struct account *a, struct task_struct *task, _Bool runnable, __u64 now)
{
	// It took its CPU unseen: there are machines that trace no switch away from some tasks. The kernel knows how
	// long it ran.
	if (a->state != CPU) {
		__u64 ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;

		take_cpu(a, 0, ran < now - a->since_ns ? now - ran : a->since_ns);
	}
	begin_write(a);
	up_to(a, now);
	a->state = runnable ? RUNQUEUE : blocked_in(a, task);
	if (watched.programs && !runnable)
		a->state = state_by_socket(a, task, a->state);
	remember(a, a->state, now);
	// It waits for more of what it received: what it did up to now was for the request. So it was where it waits for another server,
	// and may continue with another request.
	if (a->request == PICKED && (a->state == NET_RECEIVE || (a->state == UPSTREAM && a->shared))) {
		if (a->whose != OF_OWN && now > a->edge_ns)
			served_by(a)->request_ns += now - a->edge_ns;
		to_edge_in_request(a);
		a->edge_ns = now;
		if (a->state == NET_RECEIVE)
			a->request = SUSPENDED;
	}
	end_write(a);
}

// A thread of the generator's: only when it was ready and did not run is asked for.
static __always_inline void load_leave_cpu(struct account *a, _Bool runnable, __u64 now)
{
	a->state = runnable ? RUNQUEUE : OTHER;
	a->since_ns = now;
}

static __always_inline void load_take_cpu(struct account *a, _Bool was_idle, __u64 now)
{
	__u64 waking = ONCE(a->waking_ns);
	__u8 state = a->state;

	// It may have been woken before it had left its CPU, and may have left it unseen.
	a->ready_ns = a->since_ns;
	if (state == CPU)
		a->ready_ns = now;
	else if (state != RUNQUEUE && waking > a->since_ns)
		a->ready_ns = waking;
	a->ran_ns = now;
	a->ready_idle = state != RUNQUEUE && was_idle;
	a->state = CPU;
}
