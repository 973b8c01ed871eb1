// The accounts of the watched threads: whose they are, how one is opened and written.
#pragma once

#include "account_maps.h"
#include "namespace.h"

#define PROCESSES_MAX 4
#define NAME_BYTES 16
#define PF_KTHREAD 0x00200000

// The watched processes, written by user space, also while the programs run.
struct watched {
	__u32 tgid[PROCESSES_MAX];
	__u8 side[PROCESSES_MAX];
	__u32 programs; // those of `program_pids` and of this name are the server's too, with all that they start
	char name[NAME_BYTES]; // of a process's main thread; empty: none
	__u32 paths; // files get their path when they are waited for, and not from what is open later
} watched;

// The program's own process: threads named load-N are the generator's.
__u32 own_tgid;

#define PORTS_MAX 4

// Where the server takes clients, written by user space; all 0: at any port. At other ports it is a client itself, as a replica is.
struct client_ports {
	__u16 port[PORTS_MAX];
} client_ports;

// Connections of others are counted once in each window, which user space begins.
struct window {
	__u64 number;
	__u64 begin_ns;
} window;

// What could not be accounted for.
struct lost {
	__u64 accounts; // threads that found no free account
	__u64 storage; // threads or sockets without memory for theirs
	__u64 clock; // a time that went backwards
	__u64 pauses; // that found no place
	__u64 files; // waits for files that found no place
	__u64 paths; // times that a file was met whose path found no place
	__u64 requests; // answered by another thread than the one that picked them, and when they were picked was not known any more
	__u64 clients; // times that a client of shared threads had to be learned again
} lost;

// Accounts that are free: all of them at first, and those of threads that are gone once user space has read them.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(value, __u32);
} free_accounts SEC(".maps");

// Processes that are watched in a server's place.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ACCOUNTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} program_pids SEC(".maps");

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

// Whether threads keep what they did last.
const volatile _Bool keeps_pasts = 0;

// Whether threads of the kernel's own are watched: those that a user named.
const volatile _Bool follows_kernel_threads = 0;

// A server's thread has been in a state since `from`.
static __always_inline void remember(struct account *a, __u8 state, __u64 from)
{
	struct past *past;

	if (!keeps_pasts)
		return;
	past = past_of(a);
	if (!past)
		return;
	past->states[past->count & (PAST_STATES - 1)] = from << 4 | state;
	past->count++;
}

// What a thread has been in since it was remembered last turned out to be another state.
static __always_inline void correct_past(struct account *a, __u8 state)
{
	struct past *past;
	__u64 *last;

	if (!keeps_pasts)
		return;
	past = past_of(a);
	if (!past || !past->count)
		return;
	last = &past->states[(past->count - 1) & (PAST_STATES - 1)];
	*last = (*last & ~(__u64)0xf) | state;
}

// A thread of the program that watches is the generator's if it is named load-N.
static __always_inline __u8 side_of_name(const char *name)
{
	if (name[0] == 'l' && name[1] == 'o' && name[2] == 'a' && name[3] == 'd' && name[4] == '-' && name[5] >= '0' &&
	    name[5] <= '9')
		return LOAD;
	return OWN;
}

// Not inlined: where a server is watched it never runs.
static __noinline int is_of_program(struct task_struct *task, __u32 tgid)
{
	char name[NAME_BYTES] = {};

	if (bpf_map_lookup_elem(&program_pids, &tgid))
		return 1;
	if (!watched.name[0])
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), &task->group_leader->comm);
#pragma unroll
	for (int at = 0; at < NAME_BYTES; at++) {
		if (name[at] != watched.name[at])
			return 0;
		if (!name[at])
			break;
	}
	return 1;
}

static __always_inline __u8 side_of(struct task_struct *task)
{
	__u32 tgid = tgid_of(task);

	// The idle task, or one of another PID namespace.
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
	return watched.programs && is_of_program(task, tgid) ? SERVER : NOBODY;
}

// Not inlined: it runs once per thread.
static __noinline __u32 take_account(void)
{
	__u32 index = 0;

	if (bpf_map_pop_elem(&free_accounts, &index)) {
		__sync_fetch_and_add(&lost.accounts, 1);
		return 0;
	}
	return index + 1;
}

// Not inlined: it runs once per thread.
static __noinline struct account *open_account(struct task_struct *task, __u8 side)
{
	struct account *a;
	__u64 now;
	__u32 *place = STORAGE_OF_TASK(&account_of, task);

	if (!place) {
		__sync_fetch_and_add(&lost.storage, 1);
		return 0;
	}
	*place = take_account();
	a = account_at(place);
	if (!a)
		return 0;
	now = monotonic_ns();
	begin_write(a);
	a->place = *place;
	if (keeps_pasts) {
		struct past *past = past_of(a);

		if (past)
			past->count = 0;
	}
	a->tid = tid_of(task);
	a->tgid = tgid_of(task);
	a->side = side;
	a->state = CPU;
	a->born_ns = now;
	a->since_ns = now;
	bpf_probe_read_kernel(a->name, sizeof(a->name), task->comm);
	end_write(a);
	return a;
}

// The account of a thread of a watched process, opened where there is none yet.
static __always_inline struct account *account(struct task_struct *task)
{
	__u32 *place;
	__u8 side;

	// The idle task before all, whose number is 0.
	if (task->flags & PF_KTHREAD && (!follows_kernel_threads || !task->pid))
		return 0;
	place = bpf_task_storage_get(&account_of, task, 0, 0);
	if (place)
		return account_at(place);
	side = side_of(task);
	return side == NOBODY ? 0 : open_account(task, side);
}
