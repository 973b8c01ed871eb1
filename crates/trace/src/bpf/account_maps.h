// Where the accounts of the watched threads are kept, and how one is found: all that programs need that only read them.
#pragma once

#include "kernel.h"
#include "account.h"
#include "clock.h"

#define ONCE(x) (*(volatile typeof(x) *)&(x))

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(key, __u32);
	__type(value, struct account);
} accounts SEC(".maps");

// Which account is a thread's, plus one.
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} account_of SEC(".maps");

// By the place of the account. A single one where no stacks are taken.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(key, __u32);
	__type(value, struct past);
} pasts SEC(".maps");

static __always_inline struct past *past_of(struct account *a)
{
	__u32 index = a->place - 1;

	return bpf_map_lookup_elem(&pasts, &index);
}

static __always_inline struct account *account_at(__u32 *place)
{
	__u32 index;

	if (!place || !*place)
		return 0;
	index = *place - 1;
	return bpf_map_lookup_elem(&accounts, &index);
}

static __always_inline struct account *account_of_task(struct task_struct *task)
{
	return account_at(bpf_task_storage_get(&account_of, task, 0, 0));
}

// Nobody holds a lock for so long that a thread without a request waits for it. src/account.rs has the same number.
#define IDLE_MIN_NS 100000000ULL

// Whether a wait of `ns` for a condition, outside of any request, is too long to be one for a lock.
static __always_inline _Bool is_idle_by_length(struct account *a, __u64 ns)
{
	return a->state == LOCK && a->condition && ns >= IDLE_MIN_NS;
}
