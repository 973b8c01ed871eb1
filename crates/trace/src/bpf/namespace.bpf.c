// How deep the PID namespace lies of the program that has this run.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

// Never attached: of a kind that the kernel also runs when it is asked to, in the one who asks.
SEC("raw_tp/sched_waking")
int own_level(void *arguments)
{
	return bpf_get_current_task_btf()->thread_pid->level;
}
