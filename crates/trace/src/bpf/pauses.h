// Pauses: long waits of a thread, each entered once it has ended.
#pragma once

#include "accounts.h"

#define PAUSE_MIN_NS 20000000ULL
#define PAUSE_MAX_NS 60000000000ULL // who waits for longer rests; and what comes less often has no period
#define PAUSES_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PAUSES_MAX);
	__type(key, struct pause_key);
	__type(value, struct pauses);
} pauses SEC(".maps");

static __always_inline struct pauses *pauses_of(struct account *a)
{
	struct pause_key key = {};
	struct pauses none = {}, *all;

	key.born_ns = a->born_ns;
	key.tid = a->tid;
	key.call = a->state == RUNQUEUE ? NO_CALL : a->call;
	key.state = a->state;
	key.in_request = a->request == PICKED || a->request == SUSPENDED;
	all = bpf_map_lookup_elem(&pauses, &key);
	if (all)
		return all;
	bpf_map_update_elem(&pauses, &key, &none, BPF_NOEXIST);
	all = bpf_map_lookup_elem(&pauses, &key);
	if (!all)
		__sync_fetch_and_add(&lost.pauses, 1);
	return all;
}

// The thread takes its CPU, which it had left for long. Written on the CPU that the thread is on, as its account is. Not
// inlined: it is rare.
static __noinline void enter_pause(struct account *a, __u64 now)
{
	__u64 began = a->since_ns, waking = ONCE(a->waking_ns), us;
	struct pauses *all;

	// Left unseen, and nobody knows for what.
	if (a->state == CPU)
		return;
	if (a->state != RUNQUEUE && waking < now)
		now = waking;
	if (now < began + PAUSE_MIN_NS || now > began + PAUSE_MAX_NS)
		return;
	all = pauses_of(a);
	if (!all)
		return;
	if (all->began_ns && began - all->began_ns <= PAUSE_MAX_NS) {
		us = (began - all->began_ns) / 1000;
		all->periods++;
		all->period_us += us;
		all->period_squares += us * us;
	}
	us = (now - began) / 1000;
	all->began_ns = began;
	all->count++;
	all->us += us;
	all->squares += us * us;
	all->role = a->role;
	all->client = a->sender;
	bpf_probe_read_kernel(all->name, sizeof(all->name), a->name);
}
