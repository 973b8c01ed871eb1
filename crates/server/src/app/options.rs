//! Options of the sample application by their names, as a study has them.

use std::fmt;
use std::str::FromStr;

use super::{AppSpec, Trouble};

/// Names of the options, as [`AppSpec::set`] takes them.
const NAMES: [&str; 9] = [
    "php",
    "workers",
    "max_clients",
    "keep_alive",
    "sessions",
    "session_changes",
    "access_log",
    "connections",
    "trouble",
];
const KEPT_S_MAX: u16 = 999;
const CHANGES_MAX: u8 = 99;

/// Whether Apache keeps a connection open for the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepAlive {
    Off,
    /// For the application's own time.
    #[default]
    On,
    /// For this many seconds.
    Seconds(u16),
}

impl fmt::Display for KeepAlive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepAlive::Off => formatter.write_str("off"),
            KeepAlive::On => formatter.write_str("on"),
            KeepAlive::Seconds(seconds) => seconds.fmt(formatter),
        }
    }
}

impl FromStr for KeepAlive {
    type Err = String;

    fn from_str(text: &str) -> Result<KeepAlive, String> {
        match text.to_ascii_lowercase().as_str() {
            "off" => Ok(KeepAlive::Off),
            "on" => Ok(KeepAlive::On),
            other => other
                .parse()
                .ok()
                .filter(|seconds| (1..=KEPT_S_MAX).contains(seconds))
                .map(KeepAlive::Seconds)
                .ok_or_else(|| format!("it must be on, off, or seconds from 1 to {KEPT_S_MAX}")),
        }
    }
}

impl AppSpec {
    /// Sets an option by its name, such as "max_clients".
    ///
    /// # Errors
    /// The sample application has no such option, or it can't have this value: in one sentence.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let plain = name.to_ascii_lowercase().replace('-', "_");
        let wrong = |what: &str| Err(format!("{plain} = {value:?} can't be: give {what}"));
        let is = |word: &str| value.eq_ignore_ascii_case(word);
        let count = || value.parse::<u16>().ok().filter(|count| (1..=9999).contains(count));
        match plain.as_str() {
            "php" if is("fpm") || is("mod") => self.php_in_apache = is("mod"),
            "php" => return wrong("\"fpm\" or \"mod\""),
            "workers" | "max_clients" => {
                let Some(count) = count() else { return wrong("1 to 9999") };
                let place = if plain == "workers" { &mut self.workers } else { &mut self.max_clients };
                *place = Some(count);
            }
            "keep_alive" => match value.parse() {
                Ok(keep_alive) => self.keep_alive = keep_alive,
                Err(_) => return wrong("true, false, or seconds from 1 to 999"),
            },
            "sessions" if is("files") || is("memcached") => self.sessions_in_memcached = is("memcached"),
            "sessions" => return wrong("\"files\" or \"memcached\""),
            "session_changes" => match value.parse().ok().filter(|changes| *changes <= CHANGES_MAX) {
                Some(changes) => self.session_changes = Some(changes),
                None => return wrong("0 to 99"),
            },
            "access_log" if is("on") || is("off") => self.no_access_log = is("off"),
            "access_log" => return wrong("true or false"),
            "connections" if is("persistent") || is("new") => self.new_connections = is("new"),
            "connections" => return wrong("\"persistent\" or \"new\""),
            "trouble" => {
                let troubles = [Trouble::HotRow, Trouble::SessionFolder, Trouble::LogFile];
                self.troubles = match troubles.into_iter().find(|trouble| is(trouble.name())) {
                    Some(trouble) => vec![trouble],
                    None if is("none") => Vec::new(),
                    None => return wrong("\"hot-row\", \"session-folder\", \"log-file\" or \"none\""),
                };
            }
            _ => {
                return Err(format!(
                    "the sample application has no option {name:?}: it has {}",
                    NAMES.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Refuses options that contradict each other, as the start would.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.php_in_apache && self.workers.is_some() {
            return Err("workers are those of PHP-FPM: give php = \"fpm\", or max_clients".to_string());
        }
        if self.sessions_in_memcached && self.troubles.contains(&Trouble::SessionFolder) {
            return Err("the trouble session-folder needs sessions = \"files\"".to_string());
        }
        if self.no_access_log && self.troubles.contains(&Trouble::LogFile) {
            return Err("the trouble log-file needs access_log = true".to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_their_names() {
        let mut spec = AppSpec::default();
        for (name, value) in [
            ("php", "mod"),
            ("max-clients", "12"),
            ("keep_alive", "OFF"),
            ("sessions", "memcached"),
            ("session_changes", "3"),
            ("connections", "new"),
            ("access_log", "off"),
        ] {
            spec.set(name, value).unwrap();
        }
        assert!(spec.php_in_apache && spec.sessions_in_memcached && spec.new_connections);
        assert!(spec.no_access_log);
        assert_eq!((spec.max_clients, spec.session_changes), (Some(12), Some(3)));
        assert_eq!((spec.keep_alive, spec.check()), (KeepAlive::Off, Ok(())));
        spec.set("keep_alive", "15").unwrap();
        assert_eq!(spec.keep_alive, KeepAlive::Seconds(15));
        spec.set("trouble", "session-folder").unwrap();
        assert!(spec.check().unwrap_err().contains("needs sessions"));
        spec.set("trouble", "log-file").unwrap();
        assert!(spec.check().unwrap_err().contains("needs access_log"));
        spec.set("trouble", "none").unwrap();
        spec.set("workers", "2").unwrap();
        assert!(spec.check().unwrap_err().contains("PHP-FPM"));
    }

    #[test]
    fn what_an_option_cannot_be_is_refused_with_what_it_can() {
        let mut spec = AppSpec::default();
        for (name, value, word) in [
            ("wrkers", "2", "it has php, workers"),
            ("workers", "0", "1 to 9999"),
            ("keep_alive", "0", "seconds from 1"),
            ("php", "cgi", "\"fpm\" or \"mod\""),
            ("session_changes", "100", "0 to 99"),
            ("access_log", "2", "true or false"),
            ("trouble", "fire", "hot-row"),
        ] {
            let why = spec.set(name, value).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
