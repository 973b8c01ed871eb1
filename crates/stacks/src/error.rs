//! Why a module's frames can't be followed or named.

use std::path::PathBuf;

/// One module is left out; the others are not.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} can't be read: {cause}", path = path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    /// The file is no ELF of this machine's width and byte order, or is cut short.
    #[error("it is no 64-bit little-endian ELF file: {why}")]
    NotElf { why: &'static str },
    /// The process is gone, or the right to read it is missing.
    #[error("the mappings of process {pid} can't be read (run as root, or as its user): {cause}")]
    NoMaps {
        pid: u32,
        #[source]
        cause: std::io::Error,
    },
}
