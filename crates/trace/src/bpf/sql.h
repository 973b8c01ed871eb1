// What the programs and src/command.rs share: one command of a client, byte for byte.
#pragma once

#define TEXT_BYTES_MAX 1024
#define REPLY_BYTES 18
#define UNKNOWN ~0u
// Of the server's object of a connection, how much is copied, piece by piece as far as there is memory.
#define COPY_BYTES 65536
#define COPY_PIECE 1024

struct command {
	__u64 begin_ns;
	__u64 end_ns;
	__u64 connection; // the server's own object of it: an address, to compare with
	// What its thread was in meanwhile; only where `accounted`.
	__u64 cpu_ns;
	__u64 runqueue_ns;
	__u64 lock_ns;
	__u64 io_ns;
	// What the connection's object held when it ended; each only where its bit of `found` is set.
	__u64 rows_sent;
	__u64 rows_examined;
	__u64 rows_affected;
	__u32 error;
	__u32 connection_id;
	__u32 tid;
	__u32 length; // of what the client sent with it; UNKNOWN
	__u32 prepared; // number of the prepared statement that it is about; UNKNOWN
	__u32 text_bytes; // how much of its text follows
	__u8 number; // COM_…
	__u8 client; // a side: who was seen to send it
	__u8 accounted;
	__u8 reply_bytes; // of a COM_STMT_PREPARE: how much of `reply` was read
	__u8 reply[REPLY_BYTES];
	__u8 found; // bits by the order of `struct places`
	__u8 unused;
	__u8 text[TEXT_BYTES_MAX];
};

// Where in the server's object of a connection its counts lie; UNKNOWN. src/places.rs finds them out.
struct places {
	__u32 rows_sent;
	__u32 rows_examined;
	__u32 rows_affected;
	__u32 error;
	__u32 connection_id;
};

// The object of a connection as it was when a command ended.
struct copy {
	__u64 end_ns; // of the command
	__u64 bytes; // that could be read
	__u8 object[COPY_BYTES];
};
