// The user's side of a stack, as far as it can be copied.
#pragma once

#include "kernel.h"
#include "stack.h"

#define PAGE 4096
#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x10

// How much of a user's stack is copied; at most USER_BYTES_MAX.
const volatile __u32 user_bytes_max = USER_BYTES_MAX;

// The registers of the user's side and its stack, of the thread that runs. `user` holds USER_BYTES_MAX + PAGE bytes.
static __always_inline void copy_user(struct stack_record *record, __u8 *user, struct task_struct *task)
{
	struct pt_regs *regs;
	__u64 from, base, first, copied, want = user_bytes_max, rest = ~0ull;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	from = STACK_POINTER(regs);
	record->instruction_pointer = INSTRUCTION_POINTER(regs);
	record->stack_pointer = from;
	record->frame_pointer = FRAME_POINTER(regs);
	record->link_register = LINK_REGISTER(regs);
	record->user_rest_bytes = ~0u;
	// Threads made by pthreads have their own storage at the base of their stack.
	base = THREAD_POINTER(task);
	if (base > from && base - from < 1ull << 30) {
		rest = base - from;
		if (rest < want)
			want = rest;
	}
	// To the end of each page: what is not mapped ends it.
	first = PAGE - (from & (PAGE - 1));
	if (bpf_probe_read_user(user, first, (void *)from))
		return;
	copied = first;
	for (int page = 0; page < USER_BYTES_MAX / PAGE; page++) {
		if (copied >= want)
			break;
		if (bpf_probe_read_user(user + first + page * PAGE, PAGE, (void *)(from + first + page * PAGE)))
			break;
		copied += PAGE;
	}
	if (copied > want)
		copied = want;
	record->user_bytes = copied;
	if (rest != ~0ull)
		record->user_rest_bytes = rest - copied;
}

static __always_inline void set_kernel(struct stack_record *record, long bytes)
{
	record->kernel_bytes = bytes > 0 ? bytes : 0;
}
