// Where a request begins and ends, by what the sockets' tracepoints see.
#pragma once

#include "accounts.h"
#include "states.h"

#define PACKET_HEADER 4
// Of include/net/tcp_states.h; no type of the kernel's has them.
#define TCP_SYN_SENT 2
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE 7
#define TCP_LAST_ACK 9

#define COM_QUIT 1
#define COM_STMT_CLOSE 0x19

// A socket of the server or of the generator.
struct end {
	__u8 side;
	__u8 learned; // the server's: its client is or was in `server_of`
	__u8 unused[2];
	// Arrivals sent by the generator's threads, and by the program's other threads.
	__u32 from_load;
	__u32 from_own;
	__u32 picker; // the server's: the account of the thread that received last
	__u64 window; // the last one in which the connection was counted, as one of others
	__u64 picked_ns; // when that was
	__u64 arrived_ns; // the server's: the oldest data not received yet, 0: none; the generator's: the newest data
	__u64 sent_ns; // the server's, where threads are shared: when the request was picked that was answered last
	__u64 received_ns;
	// A server's: of the request that was picked last.
	__u64 transit_ns;
	__u64 transit_wakeup_ns;
	__u64 transit_runqueue_ns;
	// The generator's: of the last receive.
	__u64 delay_ns;
	__u64 delay_wakeup_ns;
	__u64 delay_runqueue_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} ends SEC(".maps");

// Requests that their thread left for another one to answer. Key: the server's socket. Value: up to when the thread that picked
// the request accounted for it.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} left SEC(".maps");

// From which of the server's sockets data comes that arrives in a client's, by addresses; only of threads that are shared.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} server_of SEC(".maps");

static __always_inline struct end *end_of(struct sock *sk, __u8 side)
{
	struct end *e = STORAGE_OF_SOCKET(&ends, sk);

	if (!e) {
		__sync_fetch_and_add(&lost.storage, 1);
		return 0;
	}
	if (e->side != side)
		e->side = side;
	return e;
}

// Who sends on a connection.
static __always_inline __u8 whose(struct end *e)
{
	if (e->from_own > e->from_load)
		return OF_OWN;
	return e->from_load ? OF_LOAD : OF_OTHERS;
}

// Whether the server is the client of what a socket is connected to: a replica's source, another node of its cluster, a
// remote table. What it sends there is no answer, and what it receives no request.
static __always_inline _Bool is_outgoing(struct sock *sk)
{
	__u16 family, port;
	struct end *e;

	if (watched.programs)
		return !is_of_client(sk);
	if (!client_ports.port[0])
		return 0;
	family = sk->__sk_common.skc_family;
	port = sk->__sk_common.skc_num;
	if ((family != AF_INET && family != AF_INET6) || port == client_ports.port[0] || port == client_ports.port[1] ||
	    port == client_ports.port[2] || port == client_ports.port[3])
		return 0;
	// A port that the server takes clients at, and did not name.
	e = bpf_sk_storage_get(&ends, sk, 0, 0);
	return !e || !(e->from_load || e->from_own);
}

// A connection of others is at work in this window.
static __always_inline void count_connection(struct account *a, struct end *e, _Bool is_same)
{
	_Bool was_at_work;

	if (e->window == window.number)
		return;
	e->window = window.number;
	// Where its request before this one was at work when the window began, user space has counted it then.
	was_at_work = is_same && a->request == REPLIED && a->edge_ns > window.begin_ns && e->picked_ns &&
		      e->picked_ns <= window.begin_ns;
	if (!was_at_work)
		a->connections++;
}

// What a program receives may be the rest of a request that it has answered. So what it waited for is entered once it is answered, or
// left for later.
static __always_inline void enter_program_transit(struct account *a)
{
	struct served *served = served_by(a);

	served->transit_ns += a->transit_ns;
	served->transit_wakeup_ns += a->transit_wakeup_ns;
	served->transit_runqueue_ns += a->transit_runqueue_ns;
	served->unseen += a->arrival_unseen;
	a->transit_ns = 0;
	a->transit_wakeup_ns = 0;
	a->transit_runqueue_ns = 0;
	a->arrival_unseen = 0;
}

// A part of the answer is with the client.
static __always_inline void reply(struct account *a, __u64 now)
{
	begin_running(a, now);
	if (a->whose != OF_OWN) {
		struct served *served = served_by(a);

		if (now > a->edge_ns && a->request != SUSPENDED)
			served->request_ns += now - a->edge_ns;
		if (a->request != REPLIED) {
			served->requests++;
			if (watched.programs)
				enter_program_transit(a);
		}
	} else if (a->request != REPLIED) {
		a->own++;
	}
	to_edge_in_request(a);
	a->edge_ns = now;
	a->request = REPLIED;
	end_write(a);
}

static __always_inline _Bool is_unanswered(struct account *a)
{
	return a->request == PICKED || a->request == SUSPENDED;
}

// A thread continues with another connection, and has not answered what it picked: another thread will.
static __noinline void leave_request(struct account *a)
{
	__u64 socket = a->socket, from = a->edge_ns;

	if (watched.programs && a->whose != OF_OWN)
		enter_program_transit(a);
	bpf_map_update_elem(&left, &socket, &from, BPF_ANY);
}

// A connection's request is picked by another thread than the one before.
static __noinline void take_turns(struct account *a, struct end *e)
{
	struct account *before = account_at(&e->picker);

	e->picker = a->place;
	if (!before)
		return;
	ONCE(before->shared) = 1;
	a->shared = 1;
}

// Up to when the thread that picked it accounted for the request from a socket that another thread answers; 0: there is none.
static __always_inline __u64 take_left(struct end *e, __u64 socket)
{
	__u64 *from = bpf_map_lookup_elem(&left, &socket), at = 0;
	struct account *picker;

	if (from) {
		at = *from;
		bpf_map_delete_elem(&left, &socket);
		// That of a socket which had this address before.
		return at < e->picked_ns ? 0 : at;
	}
	picker = account_at(&e->picker);
	if (!picker || picker->socket != socket || !is_unanswered(picker)) {
		// Not the next part of an answer, nor what the server says of itself to a client that waits for nothing.
		if (picker && picker->shared && e->sent_ns < e->picked_ns)
			__sync_fetch_and_add(&lost.requests, 1);
		e->sent_ns = e->picked_ns;
		return 0;
	}
	// Its thread waits for another request.
	at = picker->edge_ns;
	ONCE(picker->request) = NONE;
	return at;
}

// What the thread did since the last edge was for no request.
static __noinline void forget_request(struct account *a)
{
	begin_running(a, monotonic_ns());
	to_edge_outside(a);
	a->request = NONE;
	end_write(a);
}

// Before anything was received. What the thread picked before is for another thread to answer, or was the last of a
// connection that is gone. Under TLS the command that ends a connection is not seen. The gone socket may have been where this one is.
static __always_inline void greet(struct account *a, __u64 socket)
{
	if (a->request == NONE)
		return;
	if (is_unanswered(a) && a->socket != socket)
		leave_request(a);
	forget_request(a);
}

static __always_inline void server_closes(struct account *a, __u64 socket)
{
	if (a->request != NONE && a->socket == socket)
		forget_request(a);
}

// What a request waited for that no thread worked on. A loop over many sockets waits for the server that it asked.
static __always_inline void enter_wait_without_thread(struct account *a, __u64 ns)
{
	__u32 whose = a->whose == OF_LOAD ? 0 : 1;

	if (!watched.programs)
		a->time[LOCK].in_requests[whose] += ns;
	else if (a->upstream)
		a->time[UPSTREAM].in_requests[whose] += ns;
	else
		a->time[OTHER].in_requests[whose] += ns;
}

// A thread sends to a connection that it did not receive from last: it answers what another one picked. A thread pool's threads
// do that when what the request waited for is done. Meanwhile the request waited for the server's own work without a thread.
static __noinline void answer_for_other(struct account *a, struct end *e, __u64 socket, __u64 arrived)
{
	__u64 now = monotonic_ns(), from;

	from = take_left(e, socket);
	if (!from)
		return;
	e->sent_ns = e->picked_ns;
	if (!arrived)
		arrived = now;
	// What it picked itself is for yet another one to answer.
	if (is_unanswered(a))
		leave_request(a);
	a->shared = 1;
	begin_running(a, now);
	to_edge_outside(a);
	a->whose = whose(e);
	if (a->whose != OF_OWN) {
		struct served *served = served_by(a);

		served->requests++;
		if (arrived > from) {
			served->request_ns += arrived - from;
			enter_wait_without_thread(a, arrived - from);
		}
		if (watched.programs)
			served->interleaved++;
	} else {
		a->own++;
	}
	a->socket = socket;
	a->edge_ns = now;
	a->request = REPLIED;
	end_write(a);
}

// Whether what a thread sends, and has arrived at a client, is no answer to the request that it picked last.
static __always_inline _Bool is_strange(struct account *a, __u64 client)
{
	__u64 *server;

	a->server = 0;
	if (a->request == NONE)
		return 1;
	if (!a->shared)
		return a->request == REPLIED && a->client != client;
	server = bpf_map_lookup_elem(&server_of, &client);
	if (server)
		a->server = *server;
	// Another thread may have picked a request from the same socket since.
	return a->request == REPLIED || (server && *server != a->socket);
}

// What a server's thread sends has arrived in a client's socket.
static __always_inline void server_arrived(struct account *a, struct sock *sk, __u64 now)
{
	if (is_strange(a, (__u64)sk)) {
		// The end of the send shows whose answer it is.
		a->strange_ns = now;
	} else {
		// The generator's it is: the request may have arrived while somebody else had the CPU, and nobody was seen to send it.
		if (a->whose == OF_OTHERS)
			a->whose = OF_LOAD;
		reply(a, now);
		a->visible = 1;
	}
	a->client = (__u64)sk;
}

// Not inlined: threads that work for one connection never come here.
static __noinline void learn_server(struct account *a, struct end *e, __u64 socket)
{
	__u64 client = a->client;

	if (e->learned && !bpf_map_lookup_elem(&server_of, &client))
		__sync_fetch_and_add(&lost.clients, 1);
	e->learned = 1;
	bpf_map_update_elem(&server_of, &client, &socket, BPF_ANY);
}

// A server's thread has sent.
static __always_inline void server_sent(struct account *a, struct sock *sk)
{
	__u64 socket = (__u64)sk, arrived = a->strange_ns;
	struct end *e;
	_Bool is_own;

	a->strange_ns = 0;
	if (a->shared) {
		e = end_of(sk, SERVER);
		if (!e)
			return;
		if ((a->visible || arrived) && a->server != socket)
			learn_server(a, e, socket);
		if (a->visible)
			e->sent_ns = e->picked_ns;
	}
	if (a->visible) {
		// The woken client may have run before this send returned: then the arrival was the end.
		a->visible = 0;
		return;
	}
	e = end_of(sk, SERVER); // after a greeting: what comes in turn is a request
	if (!e)
		return;
	if (!e->picker) {
		greet(a, socket);
		return;
	}
	is_own = a->request != NONE && a->socket == socket;
	if (is_own && !(a->shared && a->request == REPLIED)) {
		reply(a, monotonic_ns());
		e->sent_ns = e->picked_ns;
		return;
	}
	if (is_own && e->picker == a->place) {
		reply(a, monotonic_ns());
		e->sent_ns = e->picked_ns;
	} else {
		answer_for_other(a, e, socket, arrived);
	}
}

// Two commands are never answered. No question that waits for long has their lengths.
// Their header may have been received before them.
static __always_inline _Bool is_never_answered(int length, _Bool headed)
{
	int header = headed ? 0 : PACKET_HEADER;
	struct pt_regs *regs;
	__u8 command = 0;
	__u32 says = 0;

	if (length != header + 1 && length != header + 5)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	// What TLS puts in front of each record is as long as the shorter one.
	if (!headed && (bpf_probe_read_user(&says, 3, (void *)SYSCALL_SECOND_ARGUMENT(regs)) ||
			says != (__u32)(length - PACKET_HEADER)))
		return 0;
	if (bpf_probe_read_user(&command, 1, (void *)(SYSCALL_SECOND_ARGUMENT(regs) + header)))
		return 0;
	return command == (length == header + 1 ? COM_QUIT : COM_STMT_CLOSE);
}

#define FASTCGI_HEADER 8
#define FASTCGI_STDIN 5

// Whether what a program receives after its answer is the end of a FastCGI request's body: a header without content. Web servers send it
// behind the request, and PHP-FPM reads it when it closes the connection.
static __always_inline _Bool is_end_of_fastcgi(int length)
{
	struct pt_regs *regs;
	__u8 header[FASTCGI_HEADER] = {};

	if (length != FASTCGI_HEADER)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (bpf_probe_read_user(header, sizeof(header), (void *)SYSCALL_SECOND_ARGUMENT(regs)))
		return 0;
	return header[0] == 1 && header[1] == FASTCGI_STDIN && !header[4] && !header[5];
}

// What a request waited before it was picked is entered when it is picked, and taken back if it turns out to be none.
static __always_inline void enter_transit(struct account *a, struct end *e, __u64 arrived, __u64 now)
{
	struct served *served = served_by(a);
	__u64 ready;

	e->transit_ns = 0;
	e->transit_wakeup_ns = 0;
	e->transit_runqueue_ns = 0;
	a->transit_ns = 0;
	a->transit_wakeup_ns = 0;
	a->transit_runqueue_ns = 0;
	a->arrival_unseen = !arrived || arrived > now;
	if (a->arrival_unseen) {
		if (!watched.programs)
			served->unseen++;
		return;
	}
	ready = ready_after(a, arrived);
	e->transit_ns = now - arrived;
	if (a->ready_idle)
		e->transit_wakeup_ns = ready;
	else
		e->transit_runqueue_ns = ready;
	if (watched.programs) {
		a->transit_ns = e->transit_ns;
		a->transit_wakeup_ns = e->transit_wakeup_ns;
		a->transit_runqueue_ns = e->transit_runqueue_ns;
		return;
	}
	served->transit_ns += e->transit_ns;
	served->transit_wakeup_ns += e->transit_wakeup_ns;
	served->transit_runqueue_ns += e->transit_runqueue_ns;
}

static __always_inline void take_transit_back(struct account *a, struct end *e)
{
	struct served *served = served_by(a);

	served->transit_ns -= e->transit_ns;
	served->transit_wakeup_ns -= e->transit_wakeup_ns;
	served->transit_runqueue_ns -= e->transit_runqueue_ns;
}

static __always_inline void server_received(struct account *a, struct sock *sk, int length)
{
	struct end *e = end_of(sk, SERVER);
	_Bool is_other = a->socket != (__u64)sk;
	_Bool headed = a->headed && a->request != REPLIED && !is_other;
	__u64 arrived, now;

	if (!e)
		return;
	now = monotonic_ns();
	arrived = e->arrived_ns;
	e->arrived_ns = 0;
	begin_running(a, now);
	if (watched.programs && a->request == REPLIED && !is_other && is_end_of_fastcgi(length)) {
		end_write(a);
		return;
	}
	a->visible = 0;
	a->headed = length == PACKET_HEADER && !headed && !watched.programs;
	if (!watched.programs && is_never_answered(length, headed)) {
		to_edge_outside(a);
		if (headed && a->whose != OF_OWN)
			take_transit_back(a, e);
		a->request = NONE;
	} else if (a->request != PICKED || is_other) {
		if (is_other && is_unanswered(a))
			leave_request(a);
		if (is_other && a->request != NONE)
			a->shared = 1;
		if (e->picker != a->place)
			take_turns(a, e);
		to_edge_outside(a);
		a->whose = whose(e);
		a->sender = a->whose == OF_OWN ? OWN : a->whose == OF_LOAD ? LOAD : NOBODY;
		if (a->whose == OF_OTHERS)
			count_connection(a, e, !is_other);
		a->edge_ns = now;
		if (a->whose != OF_OWN && (a->request != SUSPENDED || is_other))
			enter_transit(a, e, arrived, now);
		a->request = PICKED;
		a->socket = (__u64)sk;
		a->upstream = 0;
		a->asked = 0;
		e->picked_ns = now;
	}
	end_write(a);
}

static __always_inline void load_received(struct account *a, struct sock *sk)
{
	struct end *e = end_of(sk, LOAD);
	__u64 arrived, now, ready;

	if (!e)
		return;
	now = monotonic_ns();
	// Not cleared: while one part of an answer is received, the next may arrive.
	arrived = ONCE(e->arrived_ns);
	e->received_ns = now;
	e->delay_ns = 0;
	e->delay_wakeup_ns = 0;
	e->delay_runqueue_ns = 0;
	if (arrived > e->sent_ns && arrived <= now) {
		ready = ready_after(a, arrived);
		e->delay_ns = now - arrived;
		if (a->ready_idle)
			e->delay_wakeup_ns = ready;
		else
			e->delay_runqueue_ns = ready;
	}
}

// A request is on its way: what was received since the request before it is complete.
static __always_inline void load_sent(struct account *a, struct sock *sk)
{
	struct end *e = end_of(sk, LOAD);
	__u64 sent = a->sent_ns ? a->sent_ns : monotonic_ns();

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

// A thread of a program asks a server behind it.
static __always_inline void program_asks(struct account *a, struct sock *sk)
{
	__u64 key, now;
	struct upstream *upstream;
	struct end *e;

	key = key_of_upstream(sk);
	if (!key)
		return;
	// From here on it is seen when the answer arrives.
	e = end_of(sk, NOBODY);
	if (e)
		e->arrived_ns = 0;
	// What it asks after the answer is in no request's time.
	if (a->request == NONE || a->request == REPLIED)
		return;
	if (!a->asked || a->upstream != key) {
		upstream = upstream_of(key, sk);
		if (upstream)
			__sync_fetch_and_add(&upstream->asked, 1);
	}
	// What it did up to now was for the request that it picked; from here on it may work on others.
	now = monotonic_ns();
	begin_running(a, now);
	if (a->request == PICKED) {
		if (a->whose != OF_OWN && now > a->edge_ns)
			served_by(a)->request_ns += now - a->edge_ns;
		to_edge_in_request(a);
		a->edge_ns = now;
	}
	a->upstream = key;
	a->asked = 1;
	end_write(a);
}

// It receives an answer, which may have arrived while it did something else.
static __always_inline void program_hears(struct account *a, struct sock *sk)
{
	struct end *e = bpf_sk_storage_get(&ends, sk, 0, 0);
	struct upstream *upstream;
	__u64 key, now;

	if (e && e->arrived_ns) {
		now = monotonic_ns();
		key = key_of_upstream(sk);
		upstream = bpf_map_lookup_elem(&upstreams, &key);
		if (upstream && now > e->arrived_ns)
			__sync_fetch_and_add(&upstream->late_ns, now - e->arrived_ns);
		e->arrived_ns = 0;
	}
	begin_write(a);
	a->asked = 0;
	end_write(a);
}
