// Thread states, and the requests that the time in them belongs to.
//
// Every thread of the watched processes has an account in a map that user space reads as plain memory.
// The scheduler's tracepoints enter the time of its states; the sockets' tracepoints show where a request begins and
// where it ends. A thread's account is written by the CPU that the thread is on, so that no locks are needed.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "accounts.h"
#include "files.h"
#include "requests.h"
#include "states.h"

char LICENSE[] SEC("license") = "GPL";

#define CONTENTION_SPIN 1
#define MSG_PEEK 2

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	// Both before the clock: what is opened here begins no later than what is entered in it.
	struct account *left = account(prev), *took = account(next);
	__u64 now = 0;

	if (left) {
		now = monotonic_ns();
		if (left->side == SERVER)
			leave_cpu(left, prev, preempt || !prev_state, now);
		else if (left->side == LOAD)
			load_leave_cpu(left, preempt || !prev_state, now);
	}
	if (took) {
		if (!now)
			now = monotonic_ns();
		if (took->side == SERVER)
			take_cpu(took, !prev->pid, now);
		else if (took->side == LOAD)
			load_take_cpu(took, !prev->pid, now);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct account *a = account_of_task(task);

	if (a)
		ONCE(a->waking_ns) = monotonic_ns();
	return 0;
}

// What is counted as its run time is the counting's own. Attached only where the cost is asked for; of a kind that the
// kernel also runs when it is asked to.
SEC("raw_tp/sched_waking")
int on_nothing(void *arguments)
{
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct account *a = account_of_task(task);

	if (!a)
		return 0;
	begin_write(a);
	// What it still has to do is not for a request.
	a->request = NONE;
	end_write(a);
	return 0;
}

// What a watched process or the generator starts is watched as it is, from before it runs.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct account *a = account(parent), *born;

	if (!a || a->tgid == own_tgid || (a->side != LOAD && !watched.programs))
		return 0;
	born = open_account(child, a->side);
	if (!born)
		return 0;
	begin_write(born);
	born->state = RUNQUEUE;
	end_write(born);
	return 0;
}

// After its last switch: nobody writes this account any more.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	struct account *a = account_of_task(task);

	if (a)
		ONCE(a->gone) = 1;
	return 0;
}

// A thread bears its parent's name until it gives itself its own, which is after it was seen first.
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct account *a = account_of_task(task);

	if (!a)
		return 0;
	begin_write(a);
	bpf_probe_read_kernel_str(a->name, sizeof(a->name), name);
	if (a->side == OWN && a->tgid == own_tgid)
		a->side = side_of_name(a->name);
	end_write(a);
	return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	struct account *a;

	if (flags & CONTENTION_SPIN)
		return 0;
	a = account_of_task(bpf_get_current_task_btf());
	if (!a)
		return 0;
	note_lock(a, lock);
	a->contended = 1;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int result)
{
	struct account *a = account_of_task(bpf_get_current_task_btf());

	if (a)
		a->contended = 0;
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int length, int flags)
{
	struct account *a;

	// Nothing was there yet, as in every other receive of a server that tries before it waits.
	if (length <= 0 || flags & MSG_PEEK)
		return 0;
	a = account(bpf_get_current_task_btf());
	if (!a)
		return 0;
	if (a->side == SERVER) {
		if (!is_outgoing(sk)) {
			if (watched.programs)
				learn_address(sk);
			server_received(a, sk, length);
		} else if (watched.programs) {
			program_hears(a, sk);
		}
	}
	else if (a->side == LOAD)
		load_received(a, sk);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int length, int flags)
{
	struct account *a;

	if (length <= 0)
		return 0;
	a = account(bpf_get_current_task_btf());
	if (!a)
		return 0;
	if (a->side == LOAD)
		load_sent(a, sk);
	else if (a->side == SERVER && !is_outgoing(sk))
		server_sent(a, sk);
	else if (a->side == SERVER && watched.programs)
		program_asks(a, sk);
	return 0;
}

// Data has arrived in a socket. On one machine this runs in the sender's context, before the receiver is woken.
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_arrival, struct sock *sk)
{
	struct end *e = bpf_sk_storage_get(&ends, sk, 0, 0);
	struct account *a = 0;
	__u64 now;

	if (!e) {
		// Of a connection from before the programs ran; or of no server, and then it is never asked for.
		a = account_of_task(bpf_get_current_task_btf());
		if ((!a || (a->side != LOAD && a->side != OWN)) && !is_for_program(sk))
			return 0;
		e = end_of(sk, NOBODY);
		if (!e)
			return 0;
	}
	now = monotonic_ns();
	// An answer is complete with its last part; a request has begun with its first. A server that does not wait in its receive may
	// have it before this is called: then nothing is there.
	if (e->side == LOAD || (!e->arrived_ns && sk->sk_receive_queue.qlen))
		e->arrived_ns = now;
	if (!a)
		a = account_of_task(bpf_get_current_task_btf());
	if (!a)
		return 0;
	if (e->side != LOAD) {
		if (a->side == LOAD) {
			e->from_load++;
			if (e->side == SERVER)
				a->sent_ns = now;
		} else if (a->side == OWN) {
			e->from_own++;
		}
	} else if (a->side == SERVER) {
		server_arrived(a, sk, now);
	}
	return 0;
}

// A server's thread begins to close its connection. The last that it received may have been the command that ends it, which can't be
// read under TLS. Then no request waits for its answer, however long the thread waits for another connection.
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_tcp_state, struct sock *sk, int before, int state)
{
	struct account *a;

	if (state != TCP_FIN_WAIT1 && state != TCP_LAST_ACK && state != TCP_CLOSE && state != TCP_LISTEN)
		return 0;
	a = account_of_task(bpf_get_current_task_btf());
	if (!a || a->side != SERVER)
		return 0;
	// One that was refused or got no answer had a port.
	if (before == TCP_SYN_SENT && state == TCP_CLOSE && watched.programs &&
	    !BPF_CORE_READ((struct inet_sock *)sk, inet_sport)) {
		count_without_port(sk);
		return 0;
	}
	if (state != TCP_LISTEN)
		server_closes(a, (__u64)sk);
	else if (watched.programs)
		learn_port(sk);
	return 0;
}

// Samples divide the server's CPU time within requests into user and kernel: the kernel may account for it only by ticks.
SEC("perf_event")
int on_sample(struct bpf_perf_event_data *sample)
{
	struct account *a = account_of_task(bpf_get_current_task_btf());

	if (!a || a->side != SERVER || a->whose == OF_OWN || a->request != PICKED)
		return 0;
	if (IN_USER_MODE(sample))
		served_by(a)->user_samples++;
	else
		served_by(a)->system_samples++;
	return 0;
}
