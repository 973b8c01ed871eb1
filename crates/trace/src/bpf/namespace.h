// The numbers of threads and processes, as the PID namespace of the program has them that reads what is counted here.
#pragma once

#include <bpf/bpf_core_read.h>

#include "kernel.h"

// The inode of that namespace, and how deep below the kernel's own it lies; 0: it is the kernel's own.
const volatile __u32 pid_namespace = 0;
const volatile __u32 pid_namespace_level = 0;

// 0: it has none there, because it runs in another namespace that is not below.
static __always_inline __u32 number_there(struct pid *pid)
{
	struct pid_namespace *namespace = 0;
	struct upid *number;
	__u32 nr = 0;

	if (pid->level < pid_namespace_level)
		return 0;
	number = (struct upid *)((void *)pid + bpf_core_field_offset(pid->numbers)) + pid_namespace_level;
	if (bpf_core_read(&namespace, sizeof(namespace), &number->ns) ||
	    BPF_CORE_READ(namespace, ns.inum) != pid_namespace)
		return 0;
	bpf_core_read(&nr, sizeof(nr), &number->nr);
	return nr;
}

// An idle task is known by the kernel's own number. These two are only for what is handed on or compared.
static __always_inline __u32 tid_of(struct task_struct *task)
{
	return pid_namespace ? number_there(task->thread_pid) : task->pid;
}

static __always_inline __u32 tgid_of(struct task_struct *task)
{
	return pid_namespace ? number_there(task->group_leader->thread_pid) : task->tgid;
}
