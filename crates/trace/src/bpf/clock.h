// The clock of the program that reads what is counted here: its time namespace may show another time than the kernel.
#pragma once

// What CLOCK_MONOTONIC shows there more than bpf_ktime_get_ns() here.
const volatile __s64 clock_offset_ns = 0;

static __always_inline __u64 monotonic_ns(void)
{
	return bpf_ktime_get_ns() + clock_offset_ns;
}
