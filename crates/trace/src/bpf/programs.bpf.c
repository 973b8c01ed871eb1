// Stacks of every program on the machine that is found on a CPU, except for those whose threads stacks.bpf.c samples.
//
// It reads the accounts of budget.bpf.c, where there are any, to leave the server's threads out. It changes nothing that others read.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "account_maps.h"
#include "namespace.h"
#include "program_sample.h"
#include "user_stack.h"

char LICENSE[] SEC("license") = "GPL";

// The time between two samples of a CPU.
const volatile __u64 sample_ns = 20408163;
// The process that watches.
const volatile __u32 own_tgid;

// Of this number of samples one is recorded, and stands for all of them. User space changes it.
__u64 sample_every = 1;

// Records that were lost because the ring buffer was full.
__u64 records_lost;

// User space sets its size, by the number of CPUs.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

struct scratch {
	struct program_sample sample;
	__u8 user[USER_BYTES_MAX + PAGE];
};

// As many as CPUs: the kernel's own memory per CPU can't be as large.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

SEC("perf_event")
int on_program(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct program_sample *sample;
	struct account *account;
	__u64 every = ONCE(sample_every), bytes;
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *s;
	__u32 tgid;

	// The idle task.
	if (!task->pid)
		return 0;
	// Processes of other namespaces are not seen, and neither are the kernel's threads from within one.
	tgid = tgid_of(task);
	if (!tgid)
		return 0;
	account = account_of_task(task);
	if (account && account->side == SERVER)
		return 0;
	if (every > 1 && bpf_get_prandom_u32() % every)
		return 0;
	s = bpf_map_lookup_elem(&scratches, &cpu);
	if (!s)
		return 0;
	sample = &s->sample;
	__builtin_memset(sample, 0, offsetof(struct program_sample, stack) + offsetof(struct stack_record, kernel));
	bpf_probe_read_kernel(sample->name, sizeof(sample->name), task->group_leader->comm);
	sample->is_kernel = !!(task->flags & PF_KTHREAD);
	sample->is_own = tgid == own_tgid;
	sample->stack.kind = ON_CPU;
	sample->stack.tid = tid_of(task);
	sample->stack.tgid = tgid;
	sample->stack.t_ns = monotonic_ns();
	sample->stack.weight_ns = sample_ns * (every ? every : 1);
	if (!IN_USER_MODE(ctx))
		set_kernel(&sample->stack, bpf_get_stack(ctx, sample->stack.kernel, sizeof(sample->stack.kernel), 0));
	copy_user(&sample->stack, s->user, task);
	bytes = sample->stack.user_bytes;
	if (bytes > USER_BYTES_MAX)
		bytes = USER_BYTES_MAX;
	// Read at short intervals: nobody is woken for it.
	if (bpf_ringbuf_output(&records, s, sizeof(*sample) + bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&records_lost, 1);
	return 0;
}
