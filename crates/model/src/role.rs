//! What a server's thread is for, by the name that the server gave it.

/// A thread's role. Servers name their threads since MySQL 8.0.27 and MariaDB 10.5; others leave the process's name on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// None of those below, or a name that is not known here.
    Other = 0,
    /// Works for a connection: it received a request, or is named so.
    Connection,
    /// Accepts connections.
    Listener,
    LogWriter,
    LogFlusher,
    LogCheckpoint,
    PageCleaner,
    Purge,
    Io,
    Master,
    Timer,
    Signal,
    Replication,
    Binlog,
    DictStats,
    BufferDump,
    FullText,
}

/// Name in stacks, in place of [`Role::Connection`]'s, of a thread that worked for whyso itself.
pub const OBSERVER: &str = "observer";
/// Name in stacks of a thread that worked for a client other than the load, where the load is known.
pub const OTHER_CLIENT: &str = "other client";

/// Every role, in the order of its number.
pub const ALL: [Role; 17] = [
    Role::Other,
    Role::Connection,
    Role::Listener,
    Role::LogWriter,
    Role::LogFlusher,
    Role::LogCheckpoint,
    Role::PageCleaner,
    Role::Purge,
    Role::Io,
    Role::Master,
    Role::Timer,
    Role::Signal,
    Role::Replication,
    Role::Binlog,
    Role::DictStats,
    Role::BufferDump,
    Role::FullText,
];

/// How a name begins, and its role; the first that fits counts. The kernel cuts names to 15 bytes.
const NAMES: &[(&str, Role)] = &[
    ("one_connection", Role::Connection),
    ("connection", Role::Connection),
    ("tp_worker", Role::Connection),
    ("pool_worker", Role::Connection),
    ("ib_log_writer", Role::LogWriter),
    ("ib_log_wr_notif", Role::LogWriter),
    ("log_writer", Role::LogWriter),
    ("ib_log_flush", Role::LogFlusher),
    ("ib_log_fl_notif", Role::LogFlusher),
    ("ib_log_checkpt", Role::LogCheckpoint),
    ("ib_log_files_g", Role::LogCheckpoint),
    ("log_checkpoint", Role::LogCheckpoint),
    ("ib_pg_flush", Role::PageCleaner),
    ("page_cleaner", Role::PageCleaner),
    ("buf_flush_page", Role::PageCleaner),
    ("ib_srv_purge", Role::Purge),
    ("ib_srv_wkr", Role::Purge),
    ("ib_purge", Role::Purge),
    ("ib_io_", Role::Io),
    ("io_", Role::Io),
    ("iou-", Role::Io),
    ("ib_tpool", Role::Io),
    ("my_tpool", Role::Io),
    ("worker_thread", Role::Io),
    ("ib_src_main", Role::Master),
    ("ib_srv_", Role::Master),
    ("srv_", Role::Master),
    ("timer_handler", Role::Timer),
    ("timer", Role::Timer),
    ("signal_hand", Role::Signal),
    ("sig_handler", Role::Signal),
    ("signal_handler", Role::Signal),
    ("rpl_", Role::Replication),
    ("slave_", Role::Replication),
    ("wsrep", Role::Replication),
    ("binlog", Role::Binlog),
    ("compress_gtid", Role::Binlog),
    ("ib_dict_stats", Role::DictStats),
    ("ib_buf_dump", Role::BufferDump),
    ("ib_buf_resize", Role::BufferDump),
    ("ib_fts", Role::FullText),
    ("fts_", Role::FullText),
];

impl Role {
    /// Returns the name that tables use.
    pub fn name(self) -> &'static str {
        match self {
            Role::Other => "other",
            Role::Connection => "connection",
            Role::Listener => "listener",
            Role::LogWriter => "log writer",
            Role::LogFlusher => "log flusher",
            Role::LogCheckpoint => "log checkpoint",
            Role::PageCleaner => "page cleaner",
            Role::Purge => "purge",
            Role::Io => "io",
            Role::Master => "master",
            Role::Timer => "timer",
            Role::Signal => "signal",
            Role::Replication => "replication",
            Role::Binlog => "binlog",
            Role::DictStats => "statistics",
            Role::BufferDump => "buffer pool dump",
            Role::FullText => "full text",
        }
    }

    /// Returns the role with this number; `None` if there is none.
    pub fn of_number(number: u8) -> Option<Role> {
        ALL.get(usize::from(number)).copied()
    }

    /// Returns the role that a thread's name stands for.
    pub fn of_name(name: &str) -> Role {
        NAMES.iter().find(|(begin, _)| name.starts_with(begin)).map_or(Role::Other, |(_, role)| *role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_servers_give_tell_the_role() {
        for (name, role) in [
            ("one_connection", Role::Connection),
            ("ib_log_writer", Role::LogWriter),
            ("ib_log_flush", Role::LogFlusher),
            ("ib_pg_flush_co", Role::PageCleaner),
            ("ib_srv_purge", Role::Purge),
            ("ib_srv_mon", Role::Master),
            ("mariadbd", Role::Other),
            ("", Role::Other),
        ] {
            assert_eq!(Role::of_name(name), role, "{name}");
        }
    }

    #[test]
    fn the_number_of_a_role_is_its_place() {
        for (place, role) in ALL.iter().enumerate() {
            assert_eq!(Role::of_number(place as u8), Some(*role));
        }
    }
}
