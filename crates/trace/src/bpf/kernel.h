// The few kernel types that the programs read. Only the named fields matter: where they lie is
// looked up in the running kernel's BTF when the programs are loaded (CO-RE).
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct rw_semaphore {
	__u64 owner;
};

struct address_space {
	struct inode *host;
};

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct rw_semaphore i_rwsem;
	struct address_space i_data;
	struct hlist_head i_dentry;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; // when it took its CPU last
};

// Where a thread's own storage lies, as it was when it left its CPU last.
struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

// A number in each namespace from the kernel's own down to the one that the task is in.
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	char comm[16];
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	unsigned int __state;
	int on_cpu;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct sched_entity se;
	struct thread_struct thread;
};

struct sk_buff_head {
	__u32 qlen;
};

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	unsigned short skc_family;
	unsigned char skc_state;
	__u16 skc_num; // the port on this side
	__u16 skc_dport; // on the other one, in the network's order
	__u32 skc_daddr;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
};

struct inet_sock {
	__u16 inet_sport; // the port on this side, in the network's order; 0: none was chosen yet
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr; // an accepted one has its listener's
	struct sock *peer;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp;
	unsigned long r10;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
};
#define SYSCALL_NUMBER(regs) ((long)(regs)->orig_ax)
#define SYSCALL_ARGUMENT(regs) ((regs)->di)
#define SYSCALL_SECOND_ARGUMENT(regs) ((regs)->si)
#define SYSCALL_FOURTH_ARGUMENT(regs) ((regs)->r10)
#define INSTRUCTION_POINTER(regs) ((regs)->ip)
#define STACK_POINTER(regs) ((regs)->sp)
#define FRAME_POINTER(regs) ((regs)->bp)
#define LINK_REGISTER(regs) 0
#define FIRST_PARAMETER(regs) ((regs)->di)
#define SECOND_PARAMETER(regs) ((regs)->si)
#define THIRD_PARAMETER(regs) ((regs)->dx)
#define FOURTH_PARAMETER(regs) ((regs)->cx)
// What a return takes off the stack.
#define RETURN_ADDRESS_BYTES 8
#define THREAD_POINTER(task) ((task)->thread.fsbase)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
	__u64 orig_x0;
	__s32 syscallno;
};
#define SYSCALL_NUMBER(regs) ((long)(regs)->syscallno)
#define SYSCALL_ARGUMENT(regs) ((regs)->orig_x0)
#define SYSCALL_SECOND_ARGUMENT(regs) ((regs)->regs[1])
#define SYSCALL_FOURTH_ARGUMENT(regs) ((regs)->regs[3])
#define INSTRUCTION_POINTER(regs) ((regs)->pc)
#define STACK_POINTER(regs) ((regs)->sp)
#define FRAME_POINTER(regs) ((regs)->regs[29])
#define LINK_REGISTER(regs) ((regs)->regs[30])
#define FIRST_PARAMETER(regs) ((regs)->regs[0])
#define SECOND_PARAMETER(regs) ((regs)->regs[1])
#define THIRD_PARAMETER(regs) ((regs)->regs[2])
#define FOURTH_PARAMETER(regs) ((regs)->regs[3])
// What a return takes off the stack.
#define RETURN_ADDRESS_BYTES 0
#define THREAD_POINTER(task) ((task)->thread.uw.tp_value)
#else
#error "the registers of this architecture are not known here"
#endif

#pragma clang attribute pop

// A sample begins with the registers, as the architecture's <asm/ptrace.h> lays them out.
struct bpf_perf_event_data {
	__u64 registers[34];
};
#if defined(__TARGET_ARCH_x86)
#define IN_USER_MODE(sample) (((sample)->registers[17] & 3) == 3) // cs
#else
#define IN_USER_MODE(sample) (((sample)->registers[33] & 0xf) == 0) // pstate
#endif

// Memory of a thread's or a socket's own, made where it has none; 0 where there is no memory. The kernel also gives none where another
// CPU makes it at the same moment: then it is there when it is asked again.
#define STORAGE_OF_TASK(map, task)                                                                                    \
	(bpf_task_storage_get(map, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)                                           \
		 ?: bpf_task_storage_get(map, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
#define STORAGE_OF_SOCKET(map, sk)                                                                                    \
	(bpf_sk_storage_get(map, sk, 0, BPF_SK_STORAGE_GET_F_CREATE)                                                  \
		 ?: bpf_sk_storage_get(map, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
