// Thread states, and the requests that the time in them belongs to.
//
// Every thread of the watched processes has an account in a map that user space reads as plain memory.
// The scheduler's tracepoints enter the time of its states; the sockets' tracepoints say where a request begins and
// where it ends. A thread's account is written by the CPU that the thread is on, so that no locks are needed.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "account.h"

char LICENSE[] SEC("license") = "GPL";

#define PROCESSES_MAX 4
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define CONTENTION_SPIN 1
#define MSG_PEEK 2
#define PACKET_HEADER 4
#define COM_QUIT 1
#define COM_STMT_CLOSE 0x19
#define PF_IO_WORKER 0x10

// The watched processes, written by user space, also while the programs run.
struct watched {
	__u32 tgid[PROCESSES_MAX];
	__u8 side[PROCESSES_MAX];
} watched;

// The program's own process: threads named load-N are the generator's.
__u32 own_tgid;
// What a thread is in when it blocks inside a system call, by its number.
const volatile __u8 state_of_syscall[SYSCALLS_MAX];

// What could not be accounted for.
struct lost {
	__u64 accounts; // threads that found no free account
	__u64 storage; // threads or sockets without memory for theirs
	__u64 clock; // a time that went backwards
} lost;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(key, __u32);
	__type(value, struct account);
} accounts SEC(".maps");

// Accounts that are free: all of them at first, and those of threads that are gone once user space has read them.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(value, __u32);
} free_accounts SEC(".maps");

// Which account is a thread's, plus one.
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} account_of SEC(".maps");

// A socket of the server or of the generator.
struct end {
	__u8 side;
	__u8 unused[3];
	// Arrivals sent by the generator's threads, and by the program's other threads.
	__u32 from_load;
	__u32 from_own;
	__u32 cycles;
	__u64 arrived_ns; // data that was not received yet: the server's oldest, the generator's newest; 0: none
	__u64 sent_ns;
	__u64 received_ns;
	__u64 delay_ns; // of the last receive
	__u64 delay_wakeup_ns;
	__u64 delay_runqueue_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, struct file_wait);
} file_waits SEC(".maps");

#define ONCE(x) (*(volatile typeof(x) *)&(x))
#define BARRIER() asm volatile("" ::: "memory")

static __always_inline void begin_write(struct account *a)
{
	ONCE(a->sequence) = a->sequence + 1;
	BARRIER();
}

static __always_inline void end_write(struct account *a)
{
	BARRIER();
	ONCE(a->sequence) = a->sequence + 1;
}

static __always_inline struct account *account_at(__u32 *place)
{
	__u32 index;

	if (!place || !*place)
		return 0;
	index = *place - 1;
	return bpf_map_lookup_elem(&accounts, &index);
}

static __always_inline struct account *known(struct task_struct *task)
{
	return account_at(bpf_task_storage_get(&account_of, task, 0, 0));
}

// A thread of the program that watches is the generator's if it is named load-N.
static __always_inline __u8 side_of_name(const char *name)
{
	if (name[0] == 'l' && name[1] == 'o' && name[2] == 'a' && name[3] == 'd' && name[4] == '-' && name[5] >= '0' &&
	    name[5] <= '9')
		return LOAD;
	return OWN;
}

static __always_inline __u8 side_of(struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!tgid)
		return NOBODY;
	if (tgid == own_tgid)
		return side_of_name(task->comm);
	if (tgid == watched.tgid[0])
		return watched.side[0];
	if (tgid == watched.tgid[1])
		return watched.side[1];
	if (tgid == watched.tgid[2])
		return watched.side[2];
	if (tgid == watched.tgid[3])
		return watched.side[3];
	return NOBODY;
}

// Not inlined: it runs once a thread.
static __noinline __u32 take_account(void)
{
	__u32 index = 0;

	if (bpf_map_pop_elem(&free_accounts, &index)) {
		__sync_fetch_and_add(&lost.accounts, 1);
		return 0;
	}
	return index + 1;
}

// The account of a thread of a watched process, opened where there is none yet.
static __always_inline struct account *account(struct task_struct *task, __u64 now)
{
	struct account *a;
	__u32 *place;
	__u8 side;

	place = bpf_task_storage_get(&account_of, task, 0, 0);
	if (place)
		return account_at(place);
	side = side_of(task);
	if (side == NOBODY)
		return 0;
	place = bpf_task_storage_get(&account_of, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!place) {
		__sync_fetch_and_add(&lost.storage, 1);
		return 0;
	}
	*place = take_account();
	a = account_at(place);
	if (!a)
		return 0;
	begin_write(a);
	a->tid = task->pid;
	a->tgid = task->tgid;
	a->side = side;
	a->state = CPU;
	a->born_ns = now;
	a->since_ns = now;
	bpf_probe_read_kernel(a->name, sizeof(a->name), task->comm);
	end_write(a);
	return a;
}

static __always_inline void enter(struct account *a, __u8 state, __u64 ns)
{
	if (state < STATES)
		a->sum[state] += ns;
}

// The thread runs: what it ran since is its CPU time.
static __always_inline void up_to(struct account *a, __u64 now)
{
	if (now > a->since_ns && a->state == CPU)
		a->sum[CPU] += now - a->since_ns;
	a->since_ns = now;
}

static __always_inline void to_inside(struct account *a)
{
#pragma unroll
	for (int i = 0; i < STATES; i++) {
		if (a->of_load)
			a->inside[i] += a->sum[i] - a->mark[i];
		a->mark[i] = a->sum[i];
	}
}

static __always_inline void to_outside(struct account *a)
{
#pragma unroll
	for (int i = 0; i < STATES; i++)
		a->mark[i] = a->sum[i];
}

// How much of the last time that the thread was ready and did not run lies after `from`.
static __always_inline __u64 ready_after(struct account *a, __u64 from)
{
	if (from < a->ready_ns)
		from = a->ready_ns;
	return a->ran_ns > from ? a->ran_ns - from : 0;
}

// A file state for a descriptor that is a socket's is one of the network.
static __always_inline __u8 look_at_file(struct account *a, struct task_struct *task, unsigned long descriptor, __u8 state)
{
	struct files_struct *files = task->files;
	struct fdtable *table;
	struct file **slot;
	struct file *file = 0;
	struct inode *inode;

	a->file_inode = 0;
	if (!files)
		return state;
	table = files->fdt;
	if (!table || descriptor >= table->max_fds)
		return state;
	slot = table->fd + descriptor;
	if (bpf_probe_read_kernel(&file, sizeof(file), slot) || !file)
		return state;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return state;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK)
		return state == FILE_READ ? NET_RECEIVE : NET_SEND;
	a->file_inode = BPF_CORE_READ(inode, i_ino);
	a->file_device = BPF_CORE_READ(inode, i_sb, s_dev);
	return state;
}

// What a thread that leaves its CPU waits for.
static __always_inline __u8 blocked_in(struct account *a, struct task_struct *task)
{
	struct pt_regs *regs;
	long number;
	__u8 state;

	a->file_inode = 0;
	// It has no system call of its own.
	if (task->flags & PF_IO_WORKER)
		return AIO;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	number = SYSCALL_NUMBER(regs);
	if (number < 0 || number >= SYSCALLS_MAX)
		state = PAGE_FAULT;
	else
		state = state_of_syscall[number];
	if (state == FILE_READ || state == FILE_WRITE || state == FILE_SYNC)
		state = look_at_file(a, task, SYSCALL_ARGUMENT(regs), state);
	return a->contended ? KERNEL_LOCK : state;
}

static __always_inline void enter_file_wait(struct account *a, __u8 state, __u64 ns)
{
	struct file_key key = {};
	struct file_wait one = {}, *all;

	key.inode = a->file_inode;
	key.device = a->file_device;
	key.state = state;
	key.role = a->role;
	all = bpf_map_lookup_elem(&file_waits, &key);
	if (!all) {
		bpf_map_update_elem(&file_waits, &key, &one, BPF_NOEXIST);
		all = bpf_map_lookup_elem(&file_waits, &key);
		if (!all)
			return;
	}
	__sync_fetch_and_add(&all->count, 1);
	__sync_fetch_and_add(&all->ns, ns);
}

static __always_inline void take_cpu(struct account *a, _Bool was_idle, __u64 now)
{
	__u64 ready = a->since_ns;
	__u8 state = a->state;

	begin_write(a);
	if (now < a->since_ns) {
		__sync_fetch_and_add(&lost.clock, 1);
		now = a->since_ns;
	}
	if (state == CPU) {
		// Opened just now; or it left its CPU unseen, and nobody knows for what.
		enter(a, OTHER, now - ready);
		ready = now;
	} else if (state != RUNQUEUE) {
		// Woken before it had left its CPU: it never waited.
		__u64 waking = ONCE(a->waking_ns);

		if (waking > now)
			waking = now;
		if (waking > ready) {
			enter(a, state, waking - ready);
			if (a->file_inode && state != NET_RECEIVE)
				enter_file_wait(a, state, waking - ready);
			ready = waking;
		}
	}
	enter(a, state != RUNQUEUE && was_idle ? WAKEUP : RUNQUEUE, now - ready);
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

// Begins to write the account of the thread that runs, with all that it ran so far.
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
	// It waits for more of what it received: what it did so far was for the request.
	if (a->state == NET_RECEIVE && a->request == PICKED) {
		if (a->of_load && now > a->edge_ns)
			a->request_ns += now - a->edge_ns;
		to_inside(a);
		a->request = SUSPENDED;
	}
	end_write(a);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	__u64 now = bpf_ktime_get_ns();
	struct account *a;

	a = account(prev, now);
	if (a)
		leave_cpu(a, prev, preempt || !prev_state, now);
	a = account(next, now);
	if (a)
		take_cpu(a, !prev->pid, now);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct account *a = known(task);

	if (a)
		ONCE(a->waking_ns) = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct account *a = known(task);

	if (!a)
		return 0;
	begin_write(a);
	// What it still has to do is not for a request.
	a->request = NONE;
	end_write(a);
	return 0;
}

// After its last switch: nobody writes this account any more.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	struct account *a = known(task);

	if (a)
		ONCE(a->gone) = 1;
	return 0;
}

// A thread bears its parent's name until it gives itself its own, which is after it was seen first.
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct account *a = known(task);

	if (!a)
		return 0;
	begin_write(a);
	bpf_probe_read_kernel_str(a->name, sizeof(a->name), name);
	if (a->side == OWN && a->tgid == own_tgid)
		a->side = side_of_name(a->name);
	end_write(a);
	return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	struct account *a;

	if (flags & CONTENTION_SPIN)
		return 0;
	a = known(bpf_get_current_task_btf());
	if (a)
		a->contended = 1;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int result)
{
	struct account *a = known(bpf_get_current_task_btf());

	if (a)
		a->contended = 0;
	return 0;
}

static __always_inline struct end *end_of(struct sock *sk, __u8 side)
{
	struct end *e = bpf_sk_storage_get(&ends, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!e) {
		__sync_fetch_and_add(&lost.storage, 1);
		return 0;
	}
	e->side = side;
	return e;
}

// A part of the answer is with the client.
static __always_inline void reply(struct account *a, __u64 now)
{
	begin_running(a, now);
	if (a->of_load) {
		if (now > a->edge_ns && a->request != SUSPENDED)
			a->request_ns += now - a->edge_ns;
		if (a->request != REPLIED)
			a->requests++;
	} else if (a->request != REPLIED) {
		a->others++;
	}
	to_inside(a);
	a->edge_ns = now;
	a->request = REPLIED;
	end_write(a);
}

// Two commands are never answered, and are alone in having these lengths without being a question that waits for long.
// Their header may have been received before them.
static __always_inline _Bool is_never_answered(int length, _Bool headed)
{
	int header = headed ? 0 : PACKET_HEADER;
	struct pt_regs *regs;
	__u8 command = 0;

	if (length != header + 1 && length != header + 5)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (bpf_probe_read_user(&command, 1, (void *)(SYSCALL_SECOND_ARGUMENT(regs) + header)))
		return 0;
	return command == (length == header + 1 ? COM_QUIT : COM_STMT_CLOSE);
}

static __always_inline void server_received(struct account *a, struct sock *sk, int length, __u64 now)
{
	struct end *e = end_of(sk, SERVER);
	_Bool headed = a->headed && a->request != REPLIED && a->socket == (__u64)sk;
	__u64 arrived;

	if (!e)
		return;
	arrived = e->arrived_ns;
	e->arrived_ns = 0;
	begin_running(a, now);
	a->visible = 0;
	a->headed = length == PACKET_HEADER && !headed;
	if (is_never_answered(length, headed)) {
		to_outside(a);
		a->request = NONE;
	} else if (a->request != PICKED || a->socket != (__u64)sk) {
		to_outside(a);
		a->of_load = e->from_own <= e->from_load;
		a->edge_ns = now;
		if (a->of_load && a->request != SUSPENDED) {
			if (arrived && arrived <= now) {
				__u64 ready = ready_after(a, arrived);

				a->transit_ns += now - arrived;
				if (a->ready_idle)
					a->transit_wakeup_ns += ready;
				else
					a->transit_runqueue_ns += ready;
			} else {
				a->unseen++;
			}
		}
		a->request = PICKED;
		a->socket = (__u64)sk;
	}
	end_write(a);
}

static __always_inline void load_received(struct account *a, struct sock *sk, __u64 now)
{
	struct end *e = end_of(sk, LOAD);
	__u64 arrived, ready;

	if (!e)
		return;
	arrived = e->arrived_ns;
	e->arrived_ns = 0;
	e->received_ns = now;
	e->delay_ns = 0;
	e->delay_wakeup_ns = 0;
	e->delay_runqueue_ns = 0;
	if (arrived && arrived <= now) {
		ready = ready_after(a, arrived);
		e->delay_ns = now - arrived;
		if (a->ready_idle)
			e->delay_wakeup_ns = ready;
		else
			e->delay_runqueue_ns = ready;
	}
}

// A request is on its way: what came before it, since the one before, is complete.
static __always_inline void load_sent(struct account *a, struct sock *sk, __u64 now)
{
	struct end *e = end_of(sk, LOAD);
	__u64 sent = a->sent_ns ? a->sent_ns : now;

	a->sent_ns = 0;
	if (!e)
		return;
	if (e->sent_ns && e->received_ns > e->sent_ns && sent >= e->received_ns) {
		begin_write(a);
		a->answers++;
		a->held_ns += sent - e->received_ns;
		a->delay_ns += e->delay_ns;
		a->delay_wakeup_ns += e->delay_wakeup_ns;
		a->delay_runqueue_ns += e->delay_runqueue_ns;
		a->wire_ns += e->received_ns - e->delay_ns - e->sent_ns;
		end_write(a);
	}
	e->sent_ns = sent;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int length, int flags)
{
	struct account *a;
	__u64 now;

	if (length <= 0 || flags & MSG_PEEK)
		return 0;
	now = bpf_ktime_get_ns();
	a = account(bpf_get_current_task_btf(), now);
	if (!a)
		return 0;
	if (a->side == SERVER)
		server_received(a, sk, length, now);
	else if (a->side == LOAD)
		load_received(a, sk, now);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int length, int flags)
{
	struct account *a;
	__u64 now;

	if (length <= 0)
		return 0;
	now = bpf_ktime_get_ns();
	a = account(bpf_get_current_task_btf(), now);
	if (!a)
		return 0;
	if (a->side == LOAD) {
		load_sent(a, sk, now);
	} else if (a->side == SERVER) {
		// The woken client may have run before this send returned: then the arrival was the end.
		if (a->visible)
			a->visible = 0;
		else if (a->request != NONE)
			reply(a, now);
		else
			end_of(sk, SERVER); // a greeting: what comes in turn is a request
	}
	return 0;
}

// Data has arrived in a socket. On one machine this runs in the sender's context, before the receiver is woken.
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_arrival, struct sock *sk)
{
	struct end *e = bpf_sk_storage_get(&ends, sk, 0, 0);
	struct account *a;
	__u64 now;

	if (!e)
		return 0;
	now = bpf_ktime_get_ns();
	// An answer is complete with its last part; a request has begun with its first.
	if (!e->arrived_ns || e->side == LOAD)
		e->arrived_ns = now;
	a = known(bpf_get_current_task_btf());
	if (!a)
		return 0;
	if (e->side == SERVER) {
		if (a->side == LOAD) {
			e->from_load++;
			a->sent_ns = now;
		} else if (a->side == OWN) {
			e->from_own++;
		}
	} else if (a->side == SERVER && a->request != NONE) {
		reply(a, now);
		a->visible = 1;
	}
	return 0;
}

// Samples tell the server's CPU time within requests apart: the kernel may account for it by ticks alone.
SEC("perf_event")
int on_sample(struct bpf_perf_event_data *sample)
{
	struct account *a = known(bpf_get_current_task_btf());

	if (!a || a->side != SERVER || !a->of_load || a->request != PICKED)
		return 0;
	if (IN_USER_MODE(sample))
		a->user_samples++;
	else
		a->system_samples++;
	return 0;
}
