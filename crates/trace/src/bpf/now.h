// What now.bpf.c and src/now.rs share: one thread as it was found, byte for byte.
#pragma once

#define KERNEL_FRAMES_MAX 64
// The user's stack is copied from its pointer upwards, this much at most.
#define USER_BYTES_MAX 32768

struct thread_now {
	__u32 tid;
	__u32 tgid;
	__u32 task_state; // the kernel's own; 0: it runs or is ready
	__u8 on_cpu;
	__u8 moved; // it was on a CPU while it was read: its stacks are of different moments
	__u8 unused[2];
	__s64 call; // the system call that it is in; negative: none
	__u64 argument; // the first one of that call
	// Of the user's side; all zero where there is none.
	__u64 instruction_pointer;
	__u64 stack_pointer;
	__u64 frame_pointer;
	__u64 link_register;
	__u32 kernel_bytes;
	__u32 user_bytes; // how much of its stack follows
	__u32 user_rest_bytes; // how much more lies up to the stack's base, where that is known; ~0: unknown
	__u32 unused_too;
	char name[16];
	__u64 kernel[KERNEL_FRAMES_MAX];
};
