// What the programs and src/command.rs share: one command of a client, byte for byte.
#pragma once

#define TEXT_BYTES_MAX 1024
#define REPLY_BYTES 18
#define UNKNOWN ~0u

struct command {
	__u64 begin_ns;
	__u64 end_ns;
	__u64 connection; // the server's own object of it: an address, to compare with
	// What its thread was in meanwhile; only where `accounted`.
	__u64 cpu_ns;
	__u64 runqueue_ns;
	__u64 lock_ns;
	__u64 io_ns;
	__u32 tid;
	__u32 length; // of what the client sent with it; UNKNOWN
	__u32 prepared; // number of the prepared statement that it is about; UNKNOWN
	__u32 text_bytes; // how much of its text follows
	__u8 number; // COM_…
	__u8 client; // a side: who was seen to send it
	__u8 accounted;
	__u8 reply_bytes; // of a COM_STMT_PREPARE: how much of `reply` was read
	__u8 reply[REPLY_BYTES];
	__u8 unused[2];
	__u8 text[TEXT_BYTES_MAX];
};
