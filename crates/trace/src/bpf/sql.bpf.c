// The commands of clients, from when the server dispatches one to when it is done with it.
//
// The accounts are those of budget.bpf.c, which records what each thread is in. A command is handed over when it ends, with
// its text as it was when it began: the server writes its reply over it. No return probe is used: it would replace a return address
// on the server's stack, and copied stacks could not be followed past it. The end is a probe where the dispatcher returns to.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "account_maps.h"
#include "namespace.h"
#include "sql.h"

char LICENSE[] SEC("license") = "GPL";

#define RING_BYTES (16 << 20)

enum com {
	COM_INIT_DB = 2,
	COM_QUERY = 3,
	COM_STMT_PREPARE = 22,
	COM_STMT_EXECUTE = 23,
	COM_STMT_SEND_LONG_DATA = 24,
	COM_STMT_CLOSE = 25,
	COM_STMT_RESET = 26,
	COM_STMT_FETCH = 28,
	COM_STMT_BULK_EXECUTE = 250,
};

// The dispatcher's parameters; src/dispatcher.rs has the same.
enum signature {
	PACKET = 1, // (command, connection, packet, length, …)
	COM_DATA, // (connection, data, command): data is parsed already
};

const volatile __u32 signature = PACKET;

struct sql_lost {
	__u64 records; // the ring buffer was full
	__u64 storage; // no memory for a thread's command
	__u64 ends; // commands whose end was not seen
} sql_lost;

// Set while the programs run.
struct places places = { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN };
__u64 copied_connection = 0; // whose object is copied when one of its commands ends; 0: none's

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy);
} copies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} commands SEC(".maps");

struct under_way {
	__u64 stack_pointer; // where the dispatcher was entered; 0: no command is under way
	__u64 reply_at; // where the reply to a COM_STMT_PREPARE may lie; 0: none
	struct command command;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct under_way);
} under_way SEC(".maps");

// Sums of the running thread's account up to now; its command has their differences.
static __always_inline void note_account(struct under_way *w, __u64 now, _Bool ends)
{
	struct account *a = account_of_task(bpf_get_current_task_btf());
	struct command *c = &w->command;
	__u64 cpu = 0, runqueue = 0, lock = 0, io = 0, since;
	__u32 sequence;

	if (!a || a->side != SERVER || (ends && !c->accounted)) {
		c->accounted = 0;
		return;
	}
	// This thread is the account's only writer; it may be switched out between two reads.
	for (int attempt = 0; attempt < 3; attempt++) {
		sequence = ONCE(a->sequence);
		since = ONCE(a->since_ns);
		cpu = ONCE(a->time[CPU].sum);
		if (ONCE(a->state) == CPU && now > since)
			cpu += now - since;
		runqueue = ONCE(a->time[RUNQUEUE].sum) + ONCE(a->time[WAKEUP].sum);
		lock = ONCE(a->time[LOCK].sum);
		io = ONCE(a->time[FILE_READ].sum) + ONCE(a->time[FILE_WRITE].sum) + ONCE(a->time[FILE_SYNC].sum);
		if (sequence == ONCE(a->sequence))
			break;
	}
	if (!ends)
		c->client = a->sender;
	c->accounted = 1;
	c->cpu_ns = cpu - c->cpu_ns;
	c->runqueue_ns = runqueue - c->runqueue_ns;
	c->lock_ns = lock - c->lock_ns;
	c->io_ns = io - c->io_ns;
}

static __always_inline _Bool has_text(__u8 number)
{
	return number == COM_QUERY || number == COM_STMT_PREPARE || number == COM_INIT_DB;
}

static __always_inline _Bool is_about_prepared(__u8 number)
{
	return (number >= COM_STMT_EXECUTE && number <= COM_STMT_RESET) || number == COM_STMT_FETCH ||
	       number == COM_STMT_BULK_EXECUTE;
}

// What the client sent with the command: its length and text, or the number of the prepared statement.
static __always_inline void copy_content(struct under_way *w, __u64 content, __u32 length)
{
	struct command *c = &w->command;
	__u64 text = content;
	__u32 bytes;

	c->length = length;
	if (is_about_prepared(c->number) && bpf_probe_read_user(&c->prepared, sizeof(c->prepared), (void *)content))
		c->prepared = UNKNOWN;
	if (!has_text(c->number))
		return;
	if (signature == COM_DATA) {
		// All such begin with where the text lies and how long it is.
		if (bpf_probe_read_user(&text, sizeof(text), (void *)content) ||
		    bpf_probe_read_user(&c->length, sizeof(c->length), (void *)(content + sizeof(text))))
			return;
	}
	bytes = c->length;
	if (bytes > TEXT_BYTES_MAX)
		bytes = TEXT_BYTES_MAX;
	if (!bpf_probe_read_user(c->text, bytes, (void *)text))
		c->text_bytes = bytes;
	// The packet lies in the buffer that the reply will be written to. Its first byte was the command. Where packets are
	// compressed, a header is before it.
	if (c->number == COM_STMT_PREPARE)
		w->reply_at = text - 5;
}

SEC("uprobe")
int on_begin(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = monotonic_ns(), content;
	// All are read here: a compiler that reads one at two places in turn computes its address first, which is not allowed.
	__u64 first = FIRST_PARAMETER(ctx), second = SECOND_PARAMETER(ctx);
	__u64 third = THIRD_PARAMETER(ctx), fourth = FOURTH_PARAMETER(ctx);
	struct under_way *w = STORAGE_OF_TASK(&under_way, task);
	struct command *c;
	__u32 length;

	asm volatile("" : "+r"(first), "+r"(second), "+r"(third), "+r"(fourth));
	if (!w) {
		__sync_fetch_and_add(&sql_lost.storage, 1);
		return 0;
	}
	if (w->stack_pointer)
		__sync_fetch_and_add(&sql_lost.ends, 1);
	c = &w->command;
	__builtin_memset(c, 0, offsetof(struct command, text));
	w->stack_pointer = STACK_POINTER(ctx);
	w->reply_at = 0;
	c->begin_ns = now;
	c->tid = tid_of(task);
	c->prepared = UNKNOWN;
	if (signature == COM_DATA) {
		c->connection = first;
		content = second;
		c->number = third;
		length = UNKNOWN;
	} else {
		c->number = first;
		c->connection = second;
		content = third;
		length = fourth;
	}
	copy_content(w, content, length);
	note_account(w, now, 0);
	return 0;
}

static __always_inline _Bool read_place(void *to, __u32 bytes, __u64 object, __u32 place)
{
	return place != UNKNOWN && !bpf_probe_read_user(to, bytes, (void *)(object + place));
}

// The counts that the connection's object has of the command that has ended.
static __always_inline void read_counts(struct command *c)
{
	__u64 object = c->connection;
	__u8 found = 0;

	found |= read_place(&c->rows_sent, sizeof(c->rows_sent), object, ONCE(places.rows_sent));
	found |= read_place(&c->rows_examined, sizeof(c->rows_examined), object, ONCE(places.rows_examined)) << 1;
	found |= read_place(&c->rows_affected, sizeof(c->rows_affected), object, ONCE(places.rows_affected)) << 2;
	found |= read_place(&c->error, sizeof(c->error), object, ONCE(places.error)) << 3;
	found |= read_place(&c->connection_id, sizeof(c->connection_id), object, ONCE(places.connection_id)) << 4;
	c->found = found;
}

static __always_inline void copy_connection(const struct command *c)
{
	__u32 index = 0, bytes;
	struct copy *copy = bpf_map_lookup_elem(&copies, &index);

	if (!copy)
		return;
	for (bytes = 0; bytes < COPY_BYTES; bytes += COPY_PIECE)
		if (bpf_probe_read_user(copy->object + bytes, COPY_PIECE, (void *)(c->connection + bytes)))
			break;
	copy->bytes = bytes;
	copy->end_ns = c->end_ns;
}

SEC("uprobe")
int on_end(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct under_way *w = bpf_task_storage_get(&under_way, task, 0, 0);
	__u64 now = monotonic_ns();
	struct command *c;
	__u32 bytes;

	// Others return to the same place, too, where the dispatcher was jumped to from the end of its caller.
	if (!w || !w->stack_pointer || STACK_POINTER(ctx) != w->stack_pointer + RETURN_ADDRESS_BYTES)
		return 0;
	w->stack_pointer = 0;
	c = &w->command;
	c->end_ns = now;
	note_account(w, now, 1);
	read_counts(c);
	if (c->connection == ONCE(copied_connection))
		copy_connection(c);
	if (w->reply_at && !bpf_probe_read_user(c->reply, sizeof(c->reply), (void *)w->reply_at))
		c->reply_bytes = sizeof(c->reply);
	bytes = c->text_bytes;
	if (bytes > TEXT_BYTES_MAX)
		bytes = TEXT_BYTES_MAX;
	// Read at short intervals: nobody is woken for it.
	if (bpf_ringbuf_output(&commands, c, offsetof(struct command, text) + bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&sql_lost.records, 1);
	return 0;
}

// To measure what a probe costs: it only returns.
SEC("uprobe")
int on_nothing(struct pt_regs *ctx)
{
	return 0;
}
