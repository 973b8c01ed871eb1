// What the programs and src/stacks.rs share: one record of the ring buffer, byte for byte.
#pragma once

#define KERNEL_FRAMES_MAX 64
// The user's stack is copied from its pointer upwards, this much at most.
#define USER_BYTES_MAX 32768

enum stack_kind {
	ON_CPU = 1, // a thread was found on its CPU
	WAIT, // a thread is woken: what it waited for in the kernel, and how long
	WAKER, // the thread that woke it
	BACK, // the thread that waited is on its way back: its user's stack
	PAST, // what the thread that woke it did last: a `struct past` in place of a user's stack
	READY, // a thread that was ready and had no CPU is on its way back: its user's stack
};

struct stack_record {
	__u8 kind;
	__u8 state; // WAIT, READY: what it was in
	__u8 role; // of the thread whose stack this is; WAKER: 0, it may be anybody's
	__u8 whose; // ON_CPU, WAIT, READY: whose request the thread worked on last, plus one; 0: on none yet
	__u32 tid; // the thread whose stack this is
	__u32 tgid;
	__u32 kernel_bytes;
	__u64 t_ns;
	__u64 wait; // of WAIT and READY; WAKER: of the WAIT that it ended; BACK: the last of the waits that it is for
	__u64 length_ns; // WAIT, READY: how long it waited
	__u64 weight_ns; // ON_CPU, WAIT, READY: the time that this record stands for
	// Of the user's side; all zero where there is none.
	__u64 instruction_pointer;
	__u64 stack_pointer;
	__u64 frame_pointer;
	__u64 link_register;
	__u32 user_bytes; // how much of its stack follows
	__u32 user_rest_bytes; // how much more lies up to the stack's base, where that is known; ~0: unknown
	__u64 kernel[KERNEL_FRAMES_MAX];
};
