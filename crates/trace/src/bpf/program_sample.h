// What the program and src/program_stacks.rs share: one record of the ring buffer, byte for byte. The user's stack follows.
#pragma once

#include "stack.h"

#define PROGRAM_NAME_BYTES 16

struct program_sample {
	char name[PROGRAM_NAME_BYTES]; // of the process: that of its first thread
	__u8 is_kernel; // a thread of the kernel's: it has no stack in user space
	__u8 is_own; // of the program that watches
	__u8 unused[6];
	struct stack_record stack;
};
