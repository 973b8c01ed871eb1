// Where a request begins and ends, by what the sockets' tracepoints see.
#pragma once

#include "accounts.h"
#include "states.h"

#define PACKET_HEADER 4
#define COM_QUIT 1
#define COM_STMT_CLOSE 0x19

// A socket of the server or of the generator.
struct end {
	__u8 side;
	__u8 unused[3];
	// Arrivals sent by the generator's threads, and by the program's other threads.
	__u32 from_load;
	__u32 from_own;
	__u32 cycles;
	__u64 arrived_ns; // data that was not received yet: the server's oldest, the generator's newest; 0: none
	__u64 sent_ns;
	__u64 received_ns;
	__u64 delay_ns; // of the last receive
	__u64 delay_wakeup_ns;
	__u64 delay_runqueue_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} ends SEC(".maps");

static __always_inline struct end *end_of(struct sock *sk, __u8 side)
{
	struct end *e = bpf_sk_storage_get(&ends, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!e) {
		__sync_fetch_and_add(&lost.storage, 1);
		return 0;
	}
	if (e->side != side)
		e->side = side;
	return e;
}

// A part of the answer is with the client.
static __always_inline void reply(struct account *a, __u64 now)
{
	begin_running(a, now);
	if (a->of_load) {
		if (now > a->edge_ns && a->request != SUSPENDED)
			a->request_ns += now - a->edge_ns;
		if (a->request != REPLIED)
			a->requests++;
	} else if (a->request != REPLIED) {
		a->others++;
	}
	to_inside(a);
	a->edge_ns = now;
	a->request = REPLIED;
	end_write(a);
}

// Two commands are never answered, and are alone in having these lengths without being a question that waits for long.
// Their header may have been received before them.
static __always_inline _Bool is_never_answered(int length, _Bool headed)
{
	int header = headed ? 0 : PACKET_HEADER;
	struct pt_regs *regs;
	__u8 command = 0;

	if (length != header + 1 && length != header + 5)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (bpf_probe_read_user(&command, 1, (void *)(SYSCALL_SECOND_ARGUMENT(regs) + header)))
		return 0;
	return command == (length == header + 1 ? COM_QUIT : COM_STMT_CLOSE);
}

static __always_inline void server_received(struct account *a, struct sock *sk, int length)
{
	struct end *e = end_of(sk, SERVER);
	_Bool headed = a->headed && a->request != REPLIED && a->socket == (__u64)sk;
	__u64 arrived, now;

	if (!e)
		return;
	now = bpf_ktime_get_ns();
	arrived = e->arrived_ns;
	e->arrived_ns = 0;
	begin_running(a, now);
	a->visible = 0;
	a->headed = length == PACKET_HEADER && !headed;
	if (is_never_answered(length, headed)) {
		to_outside(a);
		a->request = NONE;
	} else if (a->request != PICKED || a->socket != (__u64)sk) {
		to_outside(a);
		a->of_load = e->from_own <= e->from_load;
		a->client = !a->of_load ? OWN : e->from_load ? LOAD : NOBODY;
		a->edge_ns = now;
		if (a->of_load && a->request != SUSPENDED) {
			if (arrived && arrived <= now) {
				__u64 ready = ready_after(a, arrived);

				a->transit_ns += now - arrived;
				if (a->ready_idle)
					a->transit_wakeup_ns += ready;
				else
					a->transit_runqueue_ns += ready;
			} else {
				a->unseen++;
			}
		}
		a->request = PICKED;
		a->socket = (__u64)sk;
	}
	end_write(a);
}

static __always_inline void load_received(struct account *a, struct sock *sk)
{
	struct end *e = end_of(sk, LOAD);
	__u64 arrived, now, ready;

	if (!e)
		return;
	now = bpf_ktime_get_ns();
	arrived = e->arrived_ns;
	e->arrived_ns = 0;
	e->received_ns = now;
	e->delay_ns = 0;
	e->delay_wakeup_ns = 0;
	e->delay_runqueue_ns = 0;
	if (arrived && arrived <= now) {
		ready = ready_after(a, arrived);
		e->delay_ns = now - arrived;
		if (a->ready_idle)
			e->delay_wakeup_ns = ready;
		else
			e->delay_runqueue_ns = ready;
	}
}

// A request is on its way: what came before it, since the one before, is complete.
static __always_inline void load_sent(struct account *a, struct sock *sk)
{
	struct end *e = end_of(sk, LOAD);
	__u64 sent = a->sent_ns ? a->sent_ns : bpf_ktime_get_ns();

	a->sent_ns = 0;
	if (!e)
		return;
	if (e->sent_ns && e->received_ns > e->sent_ns && sent >= e->received_ns) {
		begin_write(a);
		a->answers++;
		a->held_ns += sent - e->received_ns;
		a->delay_ns += e->delay_ns;
		a->delay_wakeup_ns += e->delay_wakeup_ns;
		a->delay_runqueue_ns += e->delay_runqueue_ns;
		a->wire_ns += e->received_ns - e->delay_ns - e->sent_ns;
		end_write(a);
	}
	e->sent_ns = sent;
}
