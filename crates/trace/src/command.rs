//! One record of the ring buffer: a command of a client, from when the server dispatched it to when it was done with it.

use std::borrow::Cow;

use crate::pauses::Client;

/// Up to where the text begins: `struct command` of `bpf/sql.h`.
const HEADER_BYTES: usize = 128;
/// Bytes of a text that are copied, at most.
pub const TEXT_BYTES_MAX: usize = 1024;
const REPLY_BYTES: usize = 18;
const UNKNOWN: u32 = u32::MAX;
/// A client's word for "the statement that was prepared last".
const LAST_PREPARED: u32 = u32::MAX;

pub const COM_QUIT: u8 = 1;
pub const COM_INIT_DB: u8 = 2;
pub const COM_QUERY: u8 = 3;
pub const COM_CHANGE_USER: u8 = 17;
pub const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;
pub const COM_STMT_CLOSE: u8 = 25;
pub const COM_RESET_CONNECTION: u8 = 31;
/// MariaDB's own.
const COM_STMT_BULK_EXECUTE: u8 = 250;

/// The protocol's names by number, without their COM_.
const NAMES: [&str; 34] = [
    "SLEEP",
    "QUIT",
    "INIT_DB",
    "QUERY",
    "FIELD_LIST",
    "CREATE_DB",
    "DROP_DB",
    "REFRESH",
    "SHUTDOWN",
    "STATISTICS",
    "PROCESS_INFO",
    "CONNECT",
    "PROCESS_KILL",
    "DEBUG",
    "PING",
    "TIME",
    "DELAYED_INSERT",
    "CHANGE_USER",
    "BINLOG_DUMP",
    "TABLE_DUMP",
    "CONNECT_OUT",
    "REGISTER_SLAVE",
    "STMT_PREPARE",
    "STMT_EXECUTE",
    "STMT_SEND_LONG_DATA",
    "STMT_CLOSE",
    "STMT_RESET",
    "SET_OPTION",
    "STMT_FETCH",
    "DAEMON",
    "BINLOG_DUMP_GTID",
    "RESET_CONNECTION",
    "CLONE",
    "SUBSCRIBE_GROUP_REPLICATION_STREAM",
];

/// What the protocol calls a command, without its COM_; its number where it has no name.
pub fn command_name(number: u8) -> Cow<'static, str> {
    match number {
        // MariaDB's own.
        250 => Cow::Borrowed("STMT_BULK_EXECUTE"),
        254 => Cow::Borrowed("MULTI"),
        _ => NAMES
            .get(usize::from(number))
            .map_or_else(|| Cow::Owned(number.to_string()), |name| Cow::Borrowed(*name)),
    }
}

/// Where a command's thread was while the server worked on it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTimes {
    pub cpu_ns: u64,
    /// Ready to run, on a busy CPU's queue or until an idle one woke up.
    pub runqueue_ns: u64,
    pub lock_ns: u64,
    /// Files: read, written, synced.
    pub io_ns: u64,
}

/// What the server counted of a command; each `None` where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// To the client.
    pub rows_sent: Option<u64>,
    /// That the server read to find them, those of its own temporary tables, too.
    pub rows_examined: Option<u64>,
    /// As ROW_COUNT() returns them; `None` also of a command that has none.
    pub rows_affected: Option<u64>,
    /// Number of the error that it ended with; 0: it succeeded.
    pub error: Option<u32>,
    /// The server's number of the connection.
    pub connection_id: Option<u32>,
}

/// Returns whether the server counts rows again in such a command. In others it keeps those of the one before.
fn resets_counts(number: u8) -> bool {
    matches!(number, COM_QUERY | COM_STMT_EXECUTE | COM_STMT_BULK_EXECUTE)
}

/// A command of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// `CLOCK_MONOTONIC`, in nanoseconds: when the server had read it and began to work on it.
    pub begin_ns: i64,
    /// When it was done with it, its reply sent.
    pub end_ns: i64,
    pub tid: u32,
    /// Which connection; the number is reused when a connection is gone.
    pub connection: u64,
    /// The protocol's number of the command.
    pub number: u8,
    pub client: Client,
    /// `None` where the thread has no account.
    pub times: Option<CommandTimes>,
    pub counts: CommandCounts,
    /// What the client sent with it, in bytes: of a command with text, the text.
    pub length: Option<u32>,
    /// Which prepared statement it is about.
    pub prepared: Option<StatementRef>,
    /// The text of a QUERY, a PREPARE or an INIT_DB, cut at 1024 bytes.
    pub text: Option<&'a [u8]>,
}

/// Which of a connection's prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementRef {
    Number(u32),
    Last,
}

impl<'a> Command<'a> {
    /// `None` for bytes that no program of ours wrote.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Command<'a>> {
        let header = bytes.get(..HEADER_BYTES)?;
        let long = |at: usize| Some(u64::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let int = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let (length, prepared, text_bytes) = (int(92)?, int(96)?, int(100)?);
        let (number, client, accounted, reply_bytes) = (header[104], header[105], header[106], header[107]);
        let times =
            CommandTimes { cpu_ns: long(24)?, runqueue_ns: long(32)?, lock_ns: long(40)?, io_ns: long(48)? };
        let is_read = |bit: u8| header[126] & 1 << bit != 0;
        let resets = resets_counts(number);
        let counts = CommandCounts {
            rows_sent: if is_read(0) && resets { Some(long(56)?) } else { None },
            rows_examined: if is_read(1) && resets { Some(long(64)?) } else { None },
            // All bits are set where a command has none, as after a SELECT or an error.
            rows_affected: if is_read(2) && resets {
                Some(long(72)?).filter(|rows| *rows != u64::MAX)
            } else {
                None
            },
            error: if is_read(3) { Some(int(80)?) } else { None },
            connection_id: if is_read(4) { Some(int(84)?) } else { None },
        };
        let text = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(text_bytes as usize)?)?;
        let prepared = match number {
            COM_STMT_PREPARE if usize::from(reply_bytes) == REPLY_BYTES => {
                prepared_by(header.get(108..108 + REPLY_BYTES)?).map(StatementRef::Number)
            }
            23..=26 | 28 | 250 if prepared == LAST_PREPARED => Some(StatementRef::Last),
            23..=26 | 28 | 250 => Some(StatementRef::Number(prepared)),
            _ => None,
        };
        Some(Command {
            begin_ns: long(0)? as i64,
            end_ns: long(8)? as i64,
            tid: int(88)?,
            connection: long(16)?,
            number,
            client: Client::of_side(client),
            times: (accounted == 1).then_some(times),
            counts,
            length: (length != UNKNOWN).then_some(length),
            prepared,
            text: (text_bytes > 0).then_some(text),
        })
    }
}

/// The number that the reply to a COM_STMT_PREPARE gives a statement. The reply is in the buffer that the request was read from: a byte before
/// its text, or where packets are compressed, five. `None` for an error, and where the buffer holds something else by now.
fn prepared_by(reply: &[u8]) -> Option<u32> {
    [4, 0].into_iter().find_map(|at| match reply.get(at..at + 14)? {
        // Twelve or thirteen bytes, the first packet of the reply; then 0, the number, two counts, and 0.
        [12 | 13, 0, 0, 1, 0, number @ .., _, _, _, _, 0] => {
            Some(u32::from_le_bytes(number.try_into().ok()?))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u8, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&100u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&350u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&200u64.to_ne_bytes());
        bytes[56..64].copy_from_slice(&5u64.to_ne_bytes());
        bytes[64..72].copy_from_slice(&60u64.to_ne_bytes());
        bytes[72..80].copy_from_slice(&u64::MAX.to_ne_bytes());
        bytes[80..84].copy_from_slice(&1064u32.to_ne_bytes());
        bytes[84..88].copy_from_slice(&40u32.to_ne_bytes());
        bytes[88..92].copy_from_slice(&7u32.to_ne_bytes());
        bytes[92..96].copy_from_slice(&2000u32.to_ne_bytes());
        bytes[96..100].copy_from_slice(&3u32.to_ne_bytes());
        bytes[100..104].copy_from_slice(&(text.len() as u32).to_ne_bytes());
        bytes[104] = number;
        bytes[106] = 1;
        bytes[126] = 0b1_1111;
        bytes.extend(text);
        bytes
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut bytes = record(COM_QUERY, b"SELECT 1");
        bytes.extend([0, 0, 0]);
        let read = Command::of(&bytes).unwrap();
        assert_eq!((read.begin_ns, read.end_ns, read.tid), (100, 350, 7));
        assert_eq!((read.text, read.length, read.prepared), (Some(&b"SELECT 1"[..]), Some(2000), None));
        assert_eq!(read.times.unwrap().cpu_ns, 200);
        let read = record(23, b"");
        assert_eq!(Command::of(&read).unwrap().prepared, Some(StatementRef::Number(3)));
    }

    #[test]
    fn commands_that_count_have_counts_and_no_others() {
        let counts = |bytes: &[u8]| Command::of(bytes).unwrap().counts;
        let ended = CommandCounts { error: Some(1064), connection_id: Some(40), ..CommandCounts::default() };
        let counted = CommandCounts { rows_sent: Some(5), rows_examined: Some(60), ..ended };
        assert_eq!(counts(&record(COM_QUERY, b"SELECT 1")), counted, "a SELECT affects no rows");
        let mut update = record(COM_STMT_EXECUTE, b"");
        update[72..80].copy_from_slice(&4u64.to_ne_bytes());
        assert_eq!(counts(&update), CommandCounts { rows_affected: Some(4), ..counted });
        assert_eq!(counts(&record(14, b"")), ended, "a PING finds the counts of the command before");
        update[126] = 0b100;
        assert_eq!(counts(&update), CommandCounts { rows_affected: Some(4), ..CommandCounts::default() });
    }

    #[test]
    fn what_no_program_wrote_is_no_record() {
        let bytes = record(COM_QUERY, b"SELECT 1");
        assert_eq!(Command::of(&bytes[..bytes.len() - 1]), None, "without the bytes that it announces");
        assert_eq!(Command::of(&bytes[..HEADER_BYTES - 1]), None);
        assert_eq!(Command::of(&[]), None);
    }

    #[test]
    fn the_reply_to_a_prepare_has_the_statement_s_number() {
        let reply = |at: usize, payload: u8| {
            let mut bytes = [0xaa; REPLY_BYTES];
            bytes[at..at + 14].copy_from_slice(&[payload, 0, 0, 1, 0, 0x02, 0x01, 0, 0, 9, 0, 1, 0, 0]);
            bytes
        };
        assert_eq!(prepared_by(&reply(4, 12)), Some(0x102));
        assert_eq!(prepared_by(&reply(4, 13)), Some(0x102));
        assert_eq!(prepared_by(&reply(0, 12)), Some(0x102), "where packets are compressed");
        assert_eq!(prepared_by(&reply(2, 12)), None, "at neither place");
        let mut error = reply(4, 12);
        error[8] = 0xff;
        assert_eq!(prepared_by(&error), None, "an error");
        assert_eq!(prepared_by(&[]), None);
    }

    #[test]
    fn commands_have_the_names_that_the_protocol_gives_them() {
        let names = [3, 14, 22, 31, 250, 99].map(command_name);
        assert_eq!(names, ["QUERY", "PING", "STMT_PREPARE", "RESET_CONNECTION", "STMT_BULK_EXECUTE", "99"]);
    }
}
