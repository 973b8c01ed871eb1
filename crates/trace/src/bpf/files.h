// What a descriptor is, whose lock is waited for, and the waits for each file.
#pragma once

#include "accounts.h"
#include "paths.h"

#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define ANON_INODE_FS_MAGIC 0x09041934

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, struct file_wait);
} file_waits SEC(".maps");

// A file state is one of the network where the descriptor is a socket's. It is `OTHER` where the descriptor is nothing that is stored:
// a pipe, a terminal, a timer.
static __always_inline __u8 note_file(struct account *a, struct task_struct *task, unsigned long descriptor, __u8 state)
{
	struct files_struct *files = task->files;
	struct fdtable *table;
	struct file **slot;
	struct file *file = 0;
	struct inode *inode;
	__u16 type;

	a->file_inode = 0;
	if (!files)
		return state;
	table = files->fdt;
	if (!table || descriptor >= table->max_fds)
		return state;
	slot = table->fd + descriptor;
	if (bpf_probe_read_kernel(&file, sizeof(file), slot) || !file)
		return state;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return state;
	type = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (type == S_IFSOCK)
		return state == FILE_READ ? NET_RECEIVE : NET_SEND;
	if (type != S_IFREG && type != S_IFBLK && type != S_IFDIR)
		return OTHER;
	// Timers and events: newer kernels have them as regular files.
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		return OTHER;
	a->file_inode = BPF_CORE_READ(inode, i_ino);
	a->file_device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (watched.paths)
		name_file(inode, a->file_inode, a->file_device);
	return state;
}

// The file or folder whose lock this is; 0 where it is another lock.
static __always_inline struct inode *inode_of_lock(void *lock)
{
	struct inode *inode = lock - bpf_core_field_offset(struct inode, i_rwsem);

	// Only an inode's own pages refer to it as theirs.
	return BPF_CORE_READ(inode, i_data.host) == inode ? inode : 0;
}

// The thread is about to wait for a lock inside the kernel.
static __always_inline void note_lock(struct account *a, void *lock)
{
	struct inode *inode = inode_of_lock(lock);

	a->lock_inode = 0;
	if (!inode)
		return;
	a->lock_inode = BPF_CORE_READ(inode, i_ino);
	a->lock_device = BPF_CORE_READ(inode, i_sb, s_dev);
	name_file(inode, a->lock_inode, a->lock_device);
}

static __always_inline void enter_file_wait(struct account *a, __u8 state, __u64 ns)
{
	struct file_key key = {};
	struct file_wait none = {}, *all;

	key.inode = a->file_inode;
	key.device = a->file_device;
	key.state = state;
	key.role = a->role;
	all = bpf_map_lookup_elem(&file_waits, &key);
	if (!all) {
		bpf_map_update_elem(&file_waits, &key, &none, BPF_NOEXIST);
		all = bpf_map_lookup_elem(&file_waits, &key);
		if (!all) {
			__sync_fetch_and_add(&lost.files, 1);
			return;
		}
	}
	__sync_fetch_and_add(&all->count, 1);
	__sync_fetch_and_add(&all->ns, ns);
}
