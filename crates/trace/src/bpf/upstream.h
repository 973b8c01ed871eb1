// Programs that are no database server: which of their sockets clients asked on, and which they ask other servers on.
//
// A socket is a client's if its local port is one that a watched program listens at, or if it has the address of a listener in the file
// system. All others lead to servers behind the program.
#pragma once

#include "accounts.h"

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_LISTEN 10
#define PATH_BYTES 108
#define UPSTREAMS_MAX 1024
// In a key: the address is one of IPv6, and the lower 32 bits are a sum of it.
#define IN_IPV6 (1ULL << 48)
#define PORTS_LISTENED_MAX 4096
#define ADDRESSES_MAX 1024

// Where a system call that waits for a peer has the descriptor.
enum descriptor {
	NO_DESCRIPTOR = 0,
	FIRST_ARGUMENT,
	OF_FIRST_POLLED, // of the first entry of the array in the first argument
	OF_CONNECT, // the first argument, in a call that waits until it is connected
};

// By the number of the call, written by user space before the programs are loaded.
const volatile __u8 descriptor_of_syscall[SYSCALLS_MAX];

// Ports at which the watched programs listen: user space has those of before.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS_LISTENED_MAX);
	__type(key, __u16);
	__type(value, __u8);
} ports_listened SEC(".maps");

// Addresses in the file system at which the watched programs were seen to receive: the kernel's own, to compare with.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ADDRESSES_MAX);
	__type(key, __u64);
	__type(value, __u8);
} addresses_listened SEC(".maps");

// A server behind the watched programs. Its key is a port and an address, or where the kernel keeps the address of a listener.
struct upstream {
	__u64 asked; // times that a thread sent to it within a request, after it had received
	__u64 ns; // that threads waited for it within requests
	__u64 late_ns; // that its answers had arrived before a thread received them
	char path[PATH_BYTES]; // of its socket; of TCP over IPv6, the address; else empty
	__u32 without_port; // connections to it that failed because no port on this side was left
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UPSTREAMS_MAX);
	__type(key, __u64);
	__type(value, struct upstream);
} upstreams SEC(".maps");

static __always_inline __u16 family_of(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_family);
}

static __always_inline _Bool is_listening(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN;
}

static __always_inline struct unix_address *address_of(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, addr);
}

// Whether clients of the program ask on this socket.
static __always_inline _Bool is_of_client(struct sock *sk)
{
	__u16 family = family_of(sk), port;

	if (family == AF_UNIX)
		return address_of(sk) != 0;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	port = BPF_CORE_READ(sk, __sk_common.skc_num);
	return bpf_map_lookup_elem(&ports_listened, &port) != 0;
}

// Whether what arrives there is for a watched program, whichever thread is on the CPU.
static __always_inline _Bool is_for_program(struct sock *sk)
{
	__u64 address;

	if (!watched.programs || is_listening(sk))
		return 0;
	if (family_of(sk) != AF_UNIX)
		return is_of_client(sk);
	address = (__u64)address_of(sk);
	return address && bpf_map_lookup_elem(&addresses_listened, &address);
}

static __always_inline void learn_address(struct sock *sk)
{
	__u64 address;
	__u8 one = 1;

	if (family_of(sk) != AF_UNIX)
		return;
	address = (__u64)address_of(sk);
	if (address && !bpf_map_lookup_elem(&addresses_listened, &address))
		bpf_map_update_elem(&addresses_listened, &address, &one, BPF_ANY);
}

static __always_inline void learn_port(struct sock *sk)
{
	__u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);
	__u8 one = 1;

	bpf_map_update_elem(&ports_listened, &port, &one, BPF_ANY);
}

static __always_inline void read_address6(struct sock *sk, __u32 *words)
{
	words[0] = BPF_CORE_READ(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[0]);
	words[1] = BPF_CORE_READ(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[1]);
	words[2] = BPF_CORE_READ(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[2]);
	words[3] = BPF_CORE_READ(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[3]);
}

// Which server a socket leads to; 0: to none that has a name, such as the other end of a pair.
static __always_inline __u64 key_of_upstream(struct sock *sk)
{
	__u16 family = family_of(sk), port;
	__u32 words[4] = {};
	struct sock *peer;
	__u64 key;

	if (family == AF_UNIX) {
		peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
		return peer ? (__u64)address_of(peer) : 0;
	}
	if (family != AF_INET && family != AF_INET6)
		return 0;
	port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (!port)
		return 0;
	key = (__u64)bpf_ntohs(port) << 32;
	if (family == AF_INET)
		return key | BPF_CORE_READ(sk, __sk_common.skc_daddr);
	read_address6(sk, words);
	// An address of IPv4 within IPv6.
	if (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff))
		return key | words[3];
	return key | IN_IPV6 | (words[0] ^ words[1] ^ words[2] ^ words[3]);
}

// Not inlined: it runs once per server.
static __noinline struct upstream *add_upstream(__u64 key, struct sock *sk)
{
	struct upstream none = {};
	struct unix_address *address = (struct unix_address *)key;

	// The highest bit is set in places of the kernel's memory only.
	if (!(key >> 63) && key & IN_IPV6)
		read_address6(sk, (__u32 *)none.path);
	if (key >> 63)
		bpf_probe_read_kernel_str(none.path, sizeof(none.path),
					  (void *)address + bpf_core_field_offset(struct unix_address, name) +
						  bpf_core_field_offset(struct sockaddr_un, sun_path));
	bpf_map_update_elem(&upstreams, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&upstreams, &key);
}

static __always_inline struct upstream *upstream_of(__u64 key, struct sock *sk)
{
	struct upstream *known = bpf_map_lookup_elem(&upstreams, &key);

	return known ?: add_upstream(key, sk);
}

// A program's socket could not be connected before anything was sent: the kernel found no port for it.
static __always_inline void count_without_port(struct sock *sk)
{
	struct upstream *upstream;
	__u64 key = key_of_upstream(sk);

	if (!key)
		return;
	upstream = upstream_of(key, sk);
	if (upstream)
		__sync_fetch_and_add(&upstream->without_port, 1);
}

// The socket that a thread waits for; 0: it is not known, as in a wait for many.
static __always_inline struct sock *socket_waited_for(struct account *a, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	unsigned long descriptor = SYSCALL_ARGUMENT(regs);
	struct files_struct *files = task->files;
	struct socket *socket;
	struct file *file = 0;
	struct fdtable *table;
	int polled = -1;
	__u16 type;

	if (a->call >= SYSCALLS_MAX || !files)
		return 0;
	switch (descriptor_of_syscall[a->call]) {
	case OF_FIRST_POLLED:
		if (bpf_probe_read_user(&polled, sizeof(polled), (void *)descriptor) || polled < 0)
			return 0;
		descriptor = polled;
		break;
	case NO_DESCRIPTOR:
		return 0;
	}
	table = files->fdt;
	if (!table || descriptor >= table->max_fds)
		return 0;
	if (bpf_probe_read_kernel(&file, sizeof(file), table->fd + descriptor) || !file)
		return 0;
	type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (type != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

// What a thread of a program waits for that left its CPU in `state`, within or after a request.
static __always_inline __u8 state_by_socket(struct account *a, struct task_struct *task, __u8 state)
{
	_Bool connects = a->call < SYSCALLS_MAX && descriptor_of_syscall[a->call] == OF_CONNECT;
	struct sock *sk;
	__u64 key;

	a->kept = 0;
	if (a->request == NONE || (state != NET_RECEIVE && !connects))
		return state;
	sk = socket_waited_for(a, task);
	if (!sk)
		return a->request == PICKED && a->asked ? UPSTREAM : state;
	if (is_of_client(sk)) {
		a->kept = a->request == REPLIED && !is_listening(sk);
		return state;
	}
	key = key_of_upstream(sk);
	if (!key)
		return state;
	a->upstream = key;
	upstream_of(key, sk);
	return UPSTREAM;
}

// The thread waited, and runs again.
static __always_inline void enter_upstream_wait(struct account *a, __u8 state, __u64 ns)
{
	struct upstream *upstream;

	if (a->kept)
		a->kept_ns += ns;
	// What it waits for after the answer is in no request's time.
	if (state != UPSTREAM || a->request == REPLIED)
		return;
	upstream = bpf_map_lookup_elem(&upstreams, &a->upstream);
	if (upstream)
		__sync_fetch_and_add(&upstream->ns, ns);
}
