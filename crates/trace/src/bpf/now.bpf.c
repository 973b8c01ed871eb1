// What one thread does now: its kernel's stack, its registers and its user's stack, read by an iterator over tasks. The thread is not
// stopped for it: its switches show whether it moved meanwhile.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "namespace.h"
#include "now.h"

char LICENSE[] SEC("license") = "GPL";

#define PAGE 4096
#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x10
// For some threads: they are read one by one.
#define RING_BYTES (1 << 20)

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} snapshots SEC(".maps");

struct scratch {
	struct thread_now now;
	__u8 user[USER_BYTES_MAX + PAGE];
};

// One reader at a time.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_of_reader SEC(".maps");

static __always_inline void copy_user(struct scratch *s, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 from = STACK_POINTER(regs), base = THREAD_POINTER(task);
	__u64 first = PAGE - (from & (PAGE - 1)), copied, want = USER_BYTES_MAX, rest = ~0ull;

	s->now.call = SYSCALL_NUMBER(regs);
	s->now.argument = SYSCALL_ARGUMENT(regs);
	s->now.instruction_pointer = INSTRUCTION_POINTER(regs);
	s->now.stack_pointer = from;
	s->now.frame_pointer = FRAME_POINTER(regs);
	s->now.link_register = LINK_REGISTER(regs);
	// Threads made by pthreads have their own storage at the base of their stack.
	if (base > from && base - from < 1ull << 30) {
		rest = base - from;
		if (rest < want)
			want = rest;
	}
	// To the end of each page: what is not mapped ends it.
	if (bpf_copy_from_user_task(s->user, first, (void *)from, task, 0))
		return;
	copied = first;
	for (int page = 0; page < USER_BYTES_MAX / PAGE; page++) {
		if (copied >= want)
			break;
		if (bpf_copy_from_user_task(s->user + first + page * PAGE, PAGE, (void *)(from + first + page * PAGE), task, 0))
			break;
		copied += PAGE;
	}
	if (copied > want)
		copied = want;
	s->now.user_bytes = copied;
	if (rest != ~0ull)
		s->now.user_rest_bytes = rest - copied;
}

SEC("iter.s/task")
int on_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 bytes, switches;
	__u32 zero = 0;
	struct scratch *s;
	long kernel_bytes;

	if (!task)
		return 0;
	s = bpf_map_lookup_elem(&scratch_of_reader, &zero);
	if (!s)
		return 0;
	__builtin_memset(&s->now, 0, offsetof(struct thread_now, kernel));
	s->now.tid = tid_of(task);
	s->now.tgid = tgid_of(task);
	s->now.call = -1;
	s->now.user_rest_bytes = ~0u;
	bpf_probe_read_kernel_str(s->now.name, sizeof(s->now.name), &task->comm);
	switches = task->nvcsw + task->nivcsw;
	s->now.on_cpu = task->on_cpu != 0;
	s->now.task_state = task->__state;
	if (!s->now.on_cpu) {
		kernel_bytes = bpf_get_task_stack(task, s->now.kernel, sizeof(s->now.kernel), 0);
		s->now.kernel_bytes = kernel_bytes > 0 ? kernel_bytes : 0;
		if (!(task->flags & (PF_KTHREAD | PF_IO_WORKER)))
			copy_user(s, task);
		s->now.moved = task->on_cpu || task->nvcsw + task->nivcsw != switches;
	}
	bytes = s->now.user_bytes;
	if (bytes > USER_BYTES_MAX)
		bytes = USER_BYTES_MAX;
	// Where it does not fit, the reader misses it, and reports that.
	bpf_ringbuf_output(&snapshots, s, sizeof(s->now) + bytes, BPF_RB_NO_WAKEUP);
	return 0;
}
