//! Debug information that lies apart from the program that it is of, found by the program's build id.
//!
//! Distributions keep it in packages of their own, which put it below `/usr/lib/debug/.build-id`, or on servers that speak the debuginfod
//! protocol. Servers are asked only where `DEBUGINFOD_URLS` names some. What they send is kept where other debuggers keep it, too.
//!
//! ```no_run
//! let mut files = whyso_debuginfo::DebugFiles::of_environment();
//! if let Some(path) = files.find("8f3c2a…") {
//!     println!("{}", path.display());
//! }
//! ```

mod server;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use server::FetchError;

/// Where packages put it.
const FOLDERS: [&str; 2] = ["/usr/lib/debug", "/usr/local/lib/debug"];
/// A server that sends nothing for so long is given up, unless `DEBUGINFOD_TIMEOUT` says otherwise.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// The whole of a download, unless `DEBUGINFOD_MAXTIME` says otherwise.
const TIME_MAX: Duration = Duration::from_secs(300);
/// Larger files are not fetched, unless `DEBUGINFOD_MAXSIZE` says otherwise. Those of servers have up to 1 GB.
const BYTES_MAX: u64 = 4 << 30;
/// The longest build id, in hexadecimal digits.
const ID_DIGITS_MAX: usize = 128;

/// Finds files, and remembers what it found.
#[derive(Debug)]
pub struct DebugFiles {
    folders: Vec<PathBuf>,
    cache: Option<PathBuf>,
    urls: Vec<String>,
    bounds: Bounds,
    found: HashMap<String, Option<PathBuf>>,
    failed: Vec<FetchError>,
}

/// Bounds of one download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) silence: Duration,
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

impl DebugFiles {
    /// As the environment's variables of debuginfod clients say.
    pub fn of_environment() -> DebugFiles {
        let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str| value(name).and_then(|value| value.parse::<u64>().ok()).filter(|n| *n > 0);
        let home = || {
            value("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| Some(Path::new(&value("HOME")?).join(".cache")))
        };
        let cache = value("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        let urls = value("DEBUGINFOD_URLS").unwrap_or_default();
        DebugFiles {
            folders: FOLDERS.map(PathBuf::from).to_vec(),
            cache: cache.or_else(|| Some(home()?.join("debuginfod_client"))),
            urls: urls.split_whitespace().map(|url| url.trim_end_matches('/').to_string()).collect(),
            bounds: Bounds {
                silence: number("DEBUGINFOD_TIMEOUT").map_or(SILENCE_MAX, Duration::from_secs),
                time: number("DEBUGINFOD_MAXTIME").map_or(TIME_MAX, Duration::from_secs),
                bytes: number("DEBUGINFOD_MAXSIZE").unwrap_or(BYTES_MAX),
            },
            found: HashMap::new(),
            failed: Vec::new(),
        }
    }

    /// The same without asking any server: what is on this machine.
    pub fn here() -> DebugFiles {
        DebugFiles { urls: Vec::new(), ..DebugFiles::of_environment() }
    }

    /// The file with the debug information of a build; `None` where it is nowhere. A build id is in hexadecimal digits.
    pub fn find(&mut self, build_id: &str) -> Option<PathBuf> {
        let is_id = build_id.len() > 2
            && build_id.len() <= ID_DIGITS_MAX
            && build_id.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_id {
            return None;
        }
        if let Some(known) = self.found.get(build_id) {
            return known.clone();
        }
        let found = self.in_folders(build_id).or_else(|| self.fetch(build_id));
        self.found.insert(build_id.to_string(), found.clone());
        found
    }

    /// Why servers did not send what they were asked for. That a server does not have a file is no failure.
    pub fn failures(&self) -> &[FetchError] {
        &self.failed
    }

    fn in_folders(&self, build_id: &str) -> Option<PathBuf> {
        let (begin, rest) = build_id.split_at(2);
        let places = self.folders.iter().map(|folder| folder.join(format!(".build-id/{begin}/{rest}.debug")));
        let kept = self.cached(build_id);
        places.chain(kept).find(|path| path.is_file())
    }

    fn cached(&self, build_id: &str) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join(build_id).join("debuginfo"))
    }

    fn fetch(&mut self, build_id: &str) -> Option<PathBuf> {
        let path = self.cached(build_id)?;
        for url in &self.urls {
            match server::fetch(&format!("{url}/buildid/{build_id}/debuginfo"), &path, self.bounds) {
                Ok(true) => return Some(path),
                Ok(false) => {}
                Err(error) => self.failed.push(error),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
