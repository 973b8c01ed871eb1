// What the programs and src/account.rs share: the account of one thread, byte for byte.
#pragma once

#define STATES 16
#define ACCOUNTS_MAX 16384 // user space sets the sizes of maps before it loads them: src/capacity.rs
#define SYSCALLS_MAX 512
#define NO_CALL 0xffff

// Where a thread is. src/state.rs gives the names in this order.
enum state {
	CPU = 0,
	RUNQUEUE, // ready, while another task had the CPU
	WAKEUP, // woken on a CPU that was idle, until it ran
	LOCK, // futex
	KERNEL_LOCK, // a sleeping lock inside the kernel
	FILE_READ,
	FILE_WRITE,
	FILE_SYNC,
	NET_SEND,
	NET_RECEIVE, // waiting for the peer: poll, recv
	PAGE_FAULT,
	SLEEP,
	AIO, // waiting for the completion of asynchronous input and output
	OTHER,
	IDLE, // futex, with nothing to do: see idle.h
	UPSTREAM, // waiting for a server that it asked itself: see upstream.h
};

// Whose thread it is.
enum side {
	NOBODY = 0,
	SERVER,
	LOAD, // the generator's threads that send and receive
	OWN, // other threads of the program that watches
};

// Whose request a server's thread works on. The times of the last two are kept apart: `served` and `in_requests` have both.
enum whose {
	OF_OWN = 0, // of the program that watches
	OF_LOAD, // a thread of the generator was seen to send on its connection
	OF_OTHERS, // by none of these
};

// How far a server's thread is with the request that it received last.
enum request {
	NONE = 0,
	PICKED, // received, nothing sent yet
	REPLIED, // something sent; the next receive shows whether it was the last
	SUSPENDED, // received, nothing sent, and waiting for more from the client
};

struct time {
	__u64 sum; // up to now
	__u64 mark; // `sum` at the last edge
	__u64 in_requests[2]; // within requests: the load's, others'
};

// What was counted of requests, in addition to the states of their threads.
struct served {
	__u64 requests;
	__u64 request_ns;
	__u64 transit_ns;
	__u64 transit_wakeup_ns;
	__u64 transit_runqueue_ns;
	__u64 unseen; // requests whose arrival was not seen
	__u64 user_samples;
	__u64 system_samples;
	__u64 interleaved; // requests that their thread left meanwhile for others: of programs that are no database server
};

// What is touched together lies together, from its first cache line on. First comes what a waker and every switch need, then what
// a request needs, then the sums.
struct account {
	// Odd while it is written. All except `waking_ns` and `role` is written on the CPU that the thread is on.
	__u32 sequence;
	__u32 tid;
	__u32 tgid;
	__u8 side;
	__u8 state;
	__u8 request;
	__u8 whose; // the request
	__u8 visible; // the last reply has arrived in the client's socket
	__u8 contended; // inside the slow path of a kernel lock
	__u8 gone;
	__u8 role; // written by user space
	__u8 ready_idle; // the last time that it became ready, its CPU was idle
	__u8 headed; // what was received last was only a packet's header
	__u8 shared; // one of several threads that work for the same connections, in turns: a thread pool's
	__u8 sender; // a side: who was seen to send on the connection of the last request
	__u16 call; // the system call that it is in while it waits, or NO_CALL
	__u16 entered; // states that time was entered in since the last edge, a bit each
	__u32 place; // of this account, plus one
	__u64 since_ns; // since when it has been in `state`
	__u64 waking_ns; // when it was woken last
	__u64 ready_ns; // the last time that it was ready and did not run: from here
	__u64 ran_ns; // to here

	__u64 edge_ns; // the last edge of a request: picked, or part of a reply sent
	__u64 sent_ns; // a generator's thread: when its last send arrived at the peer
	__u64 socket; // the socket that the request was received from: an address, to compare with
	__u64 client; // the socket that what it sent last arrived in: an address, to compare with
	__u64 server; // the socket that an answer to `client` was sent from before, by whichever thread
	__u64 strange_ns; // what it sends has arrived, and is no answer to the request from `socket`
	__u64 file_inode; // what it waits for, in a file state
	__u32 file_device;
	__u32 lock_device;

	struct time time[STATES];
	// A server's thread.
	struct served served[2]; // the load's, others'
	__u64 own; // requests of the program that watches
	__u64 connections; // others', each once in a window
	// A generator's thread.
	__u64 answers;
	__u64 delay_ns;
	__u64 delay_wakeup_ns;
	__u64 delay_runqueue_ns;
	__u64 held_ns;
	__u64 wire_ns;

	__u64 born_ns;
	__u64 lock_inode; // whose lock is waited for while `contended`; 0: of no file or folder
	char name[16];
	__u64 condition; // in a futex outside of requests: what may be the one that it sleeps on
	__u64 idle_condition; // the one that it has slept on
	// Of programs that are no database server: see upstream.h.
	__u64 upstream; // whom it asked last, or waits for
	__u64 kept_ns; // waits for the next request on a connection that stays open
	__u64 transit_ns; // of the request that was picked last, until it is answered or left
	__u64 transit_wakeup_ns;
	__u64 transit_runqueue_ns;
	__u8 asked; // it has sent to `upstream`, and received nothing since
	__u8 kept; // it waits for the next request on a connection that stays open
	__u8 arrival_unseen; // of the request
	__u8 unused[5];
} __attribute__((aligned(64)));

#define PAST_STATES 64

// What a thread did last, where stacks are taken. A state is when it began, shifted by four bits, and its number below.
struct past {
	__u64 count; // of states since it was seen first; the last PAST_STATES of them are there
	__u64 states[PAST_STATES];
};

struct file_key {
	__u64 inode;
	__u32 device;
	__u8 state;
	__u8 role;
	__u8 unused[2];
};

struct file_wait {
	__u64 count;
	__u64 ns;
};

#define PARTS_MAX 12
#define PART_BYTES 64

struct file_id {
	__u64 inode;
	__u32 device;
	__u32 unused;
};

// The file's name in its folder, then the folder's name in its own, and so on to the root of the file system. The root's part is
// "/". A name that is longer is cut.
struct file_path {
	__u32 is_folder;
	__u32 parts;
	char names[PARTS_MAX * PART_BYTES];
};

// Pauses of one kind: the thread, by when it was seen first, since numbers of threads are reused.
struct pause_key {
	__u64 born_ns;
	__u32 tid;
	__u16 call;
	__u8 state;
	__u8 in_request;
};

// Squares are of microseconds. They wrap, after three days of the longest waits: differences are taken in the same way.
struct pauses {
	__u64 began_ns; // the last one
	__u64 count;
	__u64 us;
	__u64 squares;
	// From the begin of one to the begin of the next, where that is no longer than PAUSE_MAX_NS.
	__u64 periods;
	__u64 period_us;
	__u64 period_squares;
	char name[16];
	__u8 role;
	__u8 client;
	__u8 unused[6];
};
