// Where the accounts of the watched threads are kept, and how one is found: all that programs need that only look.
#pragma once

#include "kernel.h"
#include "account.h"

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

#define RECENT_MAX 65536

// The same for threads that were asked for lately, by the end of their number: a guess that needs no call. An account says whose it
// is.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RECENT_MAX);
	__type(key, __u32);
	__type(value, __u32);
} recent SEC(".maps");

static __always_inline struct account *account_at(__u32 *place)
{
	__u32 index;

	if (!place || !*place)
		return 0;
	index = *place - 1;
	return bpf_map_lookup_elem(&accounts, &index);
}

static __always_inline __u32 *recent_place(struct task_struct *task)
{
	__u32 slot = task->pid & (RECENT_MAX - 1);

	return bpf_map_lookup_elem(&recent, &slot);
}

static __always_inline struct account *recent_account(struct task_struct *task, __u32 *place)
{
	struct account *a = account_at(place);

	return a && a->tid == (__u32)task->pid && !a->gone ? a : 0;
}

static __always_inline struct account *known_of_old(struct task_struct *task, __u32 *guess)
{
	__u32 *place = bpf_task_storage_get(&account_of, task, 0, 0);
	struct account *a = account_at(place);

	if (a && guess)
		*guess = *place;
	return a;
}

static __always_inline struct account *known(struct task_struct *task)
{
	__u32 *guess = recent_place(task);
	struct account *a = recent_account(task, guess);

	return a ? a : known_of_old(task, guess);
}
