// What files are called, for those that nobody has open any more when user space asks, and for folders.
#pragma once

#include "accounts.h"

#define PATHS_MAX 4096
#define E2BIG 7
#define S_IFMT 0170000
#define S_IFDIR 0040000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PATHS_MAX);
	__type(key, struct file_id);
	__type(value, struct file_path);
} file_paths SEC(".maps");

// No path is remembered any more.
_Bool paths_full;

// Where a path is put together: it is too large for the stack.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct file_path);
} path_scratch SEC(".maps");

// Not inlined: it runs once a file.
static __noinline int walk_up(struct inode *inode, struct file_id *id)
{
	struct hlist_node *node = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry, *parent;
	const unsigned char *name;
	struct file_path *path;
	__u32 zero = 0, parts = 0;

	path = bpf_map_lookup_elem(&path_scratch, &zero);
	if (!path || !node || !id)
		return 0;
	dentry = (void *)node - bpf_core_field_offset(struct dentry, d_u.d_alias);
	path->is_folder = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFDIR;
	for (int part = 0; part < PARTS_MAX; part++) {
		name = BPF_CORE_READ(dentry, d_name.name);
		if (!name || bpf_probe_read_kernel_str(path->names + part * PART_BYTES, PART_BYTES, name) <= 0)
			return 0;
		parts++;
		parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry)
			break;
		dentry = parent;
	}
	path->parts = parts;
	if (bpf_map_update_elem(&file_paths, id, path, BPF_NOEXIST) == -E2BIG)
		paths_full = 1;
	return 0;
}

// Remembers what a file is called, by its first name. Of more than fit the paths stay unknown, and walking up to each again would cost
// the server time.
static __always_inline void name_file(struct inode *inode, __u64 number, __u32 device)
{
	struct file_id id = {.inode = number, .device = device};

	if (bpf_map_lookup_elem(&file_paths, &id))
		return;
	if (paths_full)
		__sync_fetch_and_add(&lost.paths, 1);
	else
		walk_up(inode, &id);
}
