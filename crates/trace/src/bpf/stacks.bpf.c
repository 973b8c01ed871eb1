// Stacks: of threads that are found on a CPU, and of waits that are chosen when their length is known.
//
// The accounts are those of budget.bpf.c, which records what each thread is in. A wait is chosen when it ends, so
// that short waits count by their length and not by their number. Its user's stack is copied when the thread goes back to
// user space, where its memory is mapped: glibc from 2.35 on has every thread pass there after it was off its CPU.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "account_maps.h"
#include "namespace.h"
#include "stack.h"
#include "user_stack.h"

char LICENSE[] SEC("license") = "GPL";

// Records are made in memory of its own for each CPU and each program: one may interrupt the other.
enum scratches_of_a_cpu {
	OF_SAMPLE,
	OF_WAKING,
	OF_BACK,
	SCRATCHES,
};

// The time that a sample on a CPU stands for.
const volatile __u64 sample_ns = 10101010;
// States that are no waits for work: nobody asks for their stacks. A bit each.
const volatile __u32 unasked_states = 1 << CPU | 1 << RUNQUEUE | 1 << NET_RECEIVE | 1 << IDLE;

// A wait that is as long is always chosen, a shorter one with probability length / period. User space changes it.
// It begins long, so that many users who begin at once do not fill the buffer, and shortens where there are few waits.
__u64 period_ns = 40000000;
// Threads queue for CPUs by the dozen: their waits for one are chosen with a longer period.
#define READY_PERIODS 4

struct stacks_lost {
	__u64 records; // the ring buffer was full
	__u64 storage; // no memory for a thread's wait
} stacks_lost;

__u64 waits_chosen;
// The number of the last wait before those that count against the bound: user space moves it on at each reading.
__u64 bounded_from;
// This many may be chosen before the period is doubled, without waiting for user space: a load that begins would fill the
// buffer first.
const volatile __u64 waits_max = 100;
#define PERIOD_NS_MAX 1000000000ull

// User space sets its size, by the number of CPUs.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

struct scratch {
	struct stack_record record;
	__u8 user[USER_BYTES_MAX + PAGE];
};

// As many as CPUs times SCRATCHES: the kernel's own memory per CPU can't be as large.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct owed {
	__u64 wait; // the last chosen one whose user's stack is still to be copied; 0: none
	__u64 ready_ns; // how long it had been ready without a CPU, all in all, when it was back last
	__u64 is_known; // whether `ready_ns` is
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct owed);
} owed SEC(".maps");

static __always_inline struct scratch *begin(__u32 which, __u8 kind, struct task_struct *task, __u64 now)
{
	__u32 place = bpf_get_smp_processor_id() * SCRATCHES + which;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &place);

	if (!s)
		return 0;
	__builtin_memset(&s->record, 0, offsetof(struct stack_record, kernel));
	s->record.kind = kind;
	s->record.tid = tid_of(task);
	s->record.tgid = tgid_of(task);
	s->record.t_ns = now;
	return s;
}

static __always_inline void end(struct scratch *s)
{
	__u64 bytes = s->record.user_bytes;

	if (bytes > USER_BYTES_MAX)
		bytes = USER_BYTES_MAX;
	// Read at short intervals: nobody is woken for it.
	if (bpf_ringbuf_output(&records, s, sizeof(s->record) + bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&stacks_lost.records, 1);
}

// Whose thread it is, and for whom it works.
static __always_inline void set_account(struct scratch *s, struct account *a)
{
	s->record.role = a->role;
	s->record.whose = a->request == NONE ? 0 : a->whose + 1;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *sample)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct account *a = account_of_task(task);
	struct scratch *s;

	if (!a || a->side != SERVER)
		return 0;
	s = begin(OF_SAMPLE, ON_CPU, task, monotonic_ns());
	if (!s)
		return 0;
	set_account(s, a);
	s->record.weight_ns = sample_ns;
	if (!IN_USER_MODE(sample))
		set_kernel(&s->record, bpf_get_stack(sample, s->record.kernel, sizeof(s->record.kernel), 0));
	copy_user(&s->record, s->user, task);
	end(s);
	return 0;
}

static __always_inline _Bool chosen(__u64 length, __u64 period)
{
	if (length >= period)
		return 1;
	// The period is at most 4 s, that of waits for a CPU included: nothing overflows.
	return (__u64)bpf_get_prandom_u32() * period < length << 32;
}

// The number of a wait that was chosen.
static __always_inline __u64 numbered(void)
{
	__u64 wait = __sync_fetch_and_add(&waits_chosen, 1) + 1, period = ONCE(period_ns);

	// Two CPUs that find it at once may double it twice: each wait carries its own weight.
	if (wait > ONCE(bounded_from) + waits_max) {
		ONCE(bounded_from) = wait;
		ONCE(period_ns) = period * 2 < PERIOD_NS_MAX ? period * 2 : PERIOD_NS_MAX;
	}
	return wait;
}

// What a thread of the server that ended a wait did while the other waited for it.
static __always_inline void tell_past(struct task_struct *waker, __u64 wait, __u64 now)
{
	struct account *a = account_of_task(waker);
	struct past *past;
	struct scratch *s;

	if (!a || a->side != SERVER)
		return;
	past = past_of(a);
	if (!past)
		return;
	s = begin(OF_WAKING, PAST, waker, now);
	if (!s)
		return;
	s->record.wait = wait;
	s->record.user_bytes = sizeof(*past);
	if (!bpf_probe_read_kernel(s->user, sizeof(*past), past))
		end(s);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct account *a = account_of_task(task);
	struct task_struct *waker;
	struct scratch *s;
	struct owed *owes;
	__u64 now, since, wait, period;
	__u8 state;

	if (!a || a->side != SERVER)
		return 0;
	state = ONCE(a->state);
	since = ONCE(a->since_ns);
	period = ONCE(period_ns);
	if (state >= STATES || unasked_states & 1 << state)
		return 0;
	now = monotonic_ns();
	if (now <= since || is_idle_by_length(a, now - since) || !chosen(now - since, period))
		return 0;
	owes = STORAGE_OF_TASK(&owed, task);
	if (!owes) {
		__sync_fetch_and_add(&stacks_lost.storage, 1);
		return 0;
	}
	s = begin(OF_WAKING, WAIT, task, now);
	if (!s)
		return 0;
	wait = numbered();
	s->record.wait = wait;
	s->record.state = state;
	set_account(s, a);
	s->record.length_ns = now - since;
	s->record.weight_ns = now - since < period ? period : now - since;
	set_kernel(&s->record, bpf_get_task_stack(task, s->record.kernel, sizeof(s->record.kernel), 0));
	end(s);
	ONCE(owes->wait) = wait;

	waker = bpf_get_current_task_btf();
	s = begin(OF_WAKING, WAKER, waker, now);
	if (!s)
		return 0;
	s->record.wait = wait;
	set_kernel(&s->record, bpf_get_stack(ctx, s->record.kernel, sizeof(s->record.kernel), 0));
	copy_user(&s->record, s->user, waker);
	end(s);
	tell_past(waker, wait, now);
	return 0;
}

// How long a thread was ready and had no CPU since it was back last, in however many turns.
static __always_inline __u64 ready_since(struct owed *owes, struct account *a)
{
	__u64 sum = ONCE(a->time[RUNQUEUE].sum), ready = owes->is_known ? sum - owes->ready_ns : 0;

	owes->ready_ns = sum;
	owes->is_known = 1;
	return ready;
}

SEC("tp_btf/rseq_update")
int BPF_PROG(on_back, struct task_struct *task)
{
	struct account *a;
	struct owed *owes;
	struct scratch *s;
	__u64 wait, ready, period;
	_Bool tells_ready;

	task = bpf_get_current_task_btf();
	a = account_of_task(task);
	if (!a || a->side != SERVER)
		return 0;
	owes = STORAGE_OF_TASK(&owed, task);
	if (!owes) {
		__sync_fetch_and_add(&stacks_lost.storage, 1);
		return 0;
	}
	wait = owes->wait;
	owes->wait = 0;
	ready = ready_since(owes, a);
	period = ONCE(period_ns) * READY_PERIODS;
	tells_ready = ready && chosen(ready, period);
	if (!wait && !tells_ready)
		return 0;
	s = begin(OF_BACK, BACK, task, monotonic_ns());
	if (!s)
		return 0;
	copy_user(&s->record, s->user, task);
	if (wait) {
		s->record.wait = wait;
		end(s);
	}
	if (tells_ready) {
		s->record.kind = READY;
		s->record.wait = numbered();
		s->record.state = RUNQUEUE;
		set_account(s, a);
		s->record.length_ns = ready;
		s->record.weight_ns = ready < period ? period : ready;
		end(s);
	}
	return 0;
}
