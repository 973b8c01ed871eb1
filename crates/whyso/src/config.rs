//! The user's own defaults: `~/.config/whyso/config.toml`, or `whyso/config.toml` in `$XDG_CONFIG_HOME`. What is typed comes before them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{ColorChoice, ValueEnum};
use serde::Deserialize;
use thiserror::Error;

/// The folder of runs where none is named.
const RUNS: &str = "runs";
/// A DSN that `~/.my.cnf`, the usual sockets and the user's own name complete.
const DSN: &str = "mysql://";
/// More of a file is not read.
const BYTES_MAX: u64 = 64 << 10;

/// What the file may set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The server of commands without `--dsn`.
    pub(crate) dsn: Option<String>,
    /// The folder of recordings.
    pub(crate) runs: Option<String>,
    /// Users at each level of `whyso run`.
    pub(crate) users: Option<Vec<u32>>,
    /// auto, always or never.
    pub(crate) color: Option<String>,
}

/// Why the file can't be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    #[error("can't read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("can't understand {}: {cause}", path.display())]
    Parse { path: PathBuf, cause: toml::de::Error },
    #[error("can't understand {}: color is auto, always or never, and not {color:?}", path.display())]
    Color { path: PathBuf, color: String },
}

/// Read once: a file that changes while the program runs changes nothing.
static CONFIG: OnceLock<Result<Config, ConfigError>> = OnceLock::new();

fn read_once() -> &'static Result<Config, ConfigError> {
    CONFIG.get_or_init(|| path().map_or(Ok(Config::default()), |path| read(&path)))
}

/// What the file sets. One that can't be understood ends the program before anything is done.
pub(crate) fn config() -> Result<&'static Config, &'static ConfigError> {
    read_once().as_ref()
}

/// The folder of recordings, for the defaults of options.
pub(crate) fn runs() -> &'static str {
    config().ok().and_then(|config| config.runs.as_deref()).unwrap_or(RUNS)
}

/// The server of a command without `--dsn`.
pub(crate) fn dsn() -> String {
    config().ok().and_then(|config| config.dsn.clone()).unwrap_or_else(|| DSN.to_string())
}

/// The server that `--dsn` and `--container` name.
pub(crate) fn dsn_of(dsn: Option<&str>, container: Option<&str>) -> String {
    let dsn = dsn.map_or_else(self::dsn, str::to_string);
    let Some(container) = container else { return dsn };
    let separator = if dsn.contains('?') { '&' } else { '?' };
    let name: String = container.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{dsn}{separator}container={name}")
}

/// The servers that several `--dsn` and `--container` name. With containers, a single `--dsn` is how to log in at each.
pub(crate) fn dsns_of(dsns: &[String], containers: &[String]) -> anyhow::Result<Vec<String>> {
    match (dsns, containers) {
        (dsns, []) => Ok(dsns.to_vec()),
        ([], containers) => Ok(containers.iter().map(|name| dsn_of(None, Some(name))).collect()),
        ([dsn], containers) => Ok(containers.iter().map(|name| dsn_of(Some(dsn), Some(name))).collect()),
        _ => anyhow::bail!(whyso_control::Error::Plan(
            "--container takes one --dsn at most: give each server in a container as --dsn 'mysql://root@localhost/?container=NAME'"
                .to_string()
        )),
    }
}

impl Config {
    pub(crate) fn color(&self) -> Option<ColorChoice> {
        self.color.as_deref().and_then(|color| ColorChoice::from_str(color, false).ok())
    }
}

fn path() -> Option<PathBuf> {
    Some(folder()?.join("config.toml"))
}

/// The folder of the user's own files.
pub(crate) fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(folder.join("whyso"))
}

fn read(path: &Path) -> Result<Config, ConfigError> {
    let text = match whyso_record::private::read_file(path, BYTES_MAX) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(cause) => return Err(ConfigError::Read { path: path.to_path_buf(), cause }),
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let config: Config =
        toml::from_str(&text).map_err(|cause| ConfigError::Parse { path: path.to_path_buf(), cause })?;
    match (&config.color, config.color()) {
        (Some(color), None) => Err(ConfigError::Color { path: path.to_path_buf(), color: color.clone() }),
        _ => Ok(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_sets_what_it_names_and_one_that_is_not_there_sets_nothing() {
        let config = parsed("dsn = \"mysql://me@db1/\"\nusers = [1, 8]\ncolor = \"never\"\n").unwrap();
        assert_eq!((config.dsn.as_deref(), config.runs.as_deref()), (Some("mysql://me@db1/"), None));
        assert_eq!((config.users.as_deref(), config.color()), (Some(&[1, 8][..]), Some(ColorChoice::Never)));
        assert_eq!(read(Path::new("/nowhere/config.toml")).unwrap(), Config::default());
    }

    #[test]
    fn several_containers_are_several_servers() {
        let of = |dsns: &[&str], containers: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
            dsns_of(&owned(dsns), &owned(containers))
        };
        let shop = "mysql://root@localhost/shop";
        assert_eq!(
            of(&[shop], &["a", "b"]).unwrap(),
            [format!("{shop}?container=%61"), format!("{shop}?container=%62")]
        );
        assert_eq!(of(&[shop, "mysql://other/"], &[]).unwrap(), [shop, "mysql://other/"]);
        assert!(of(&[shop, "mysql://other/"], &["a"]).unwrap_err().to_string().contains("one --dsn at most"));
    }

    #[test]
    fn a_container_is_a_parameter_of_the_dsn() {
        let of = |dsn| dsn_of(Some(dsn), Some("a&b"));
        assert_eq!(of("mysql://root@localhost/shop"), "mysql://root@localhost/shop?container=%61%26%62");
        assert_eq!(of("mysql://localhost/?tls=off"), "mysql://localhost/?tls=off&container=%61%26%62");
    }

    #[test]
    fn a_mistake_is_named_with_its_file() {
        for (text, words) in [
            ("dns = \"x\"", "dns"),
            ("users = 5", "users"),
            ("color = \"red\"", "never"),
            ("=", "config.toml"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(words) && error.contains("config.toml"), "{error}");
        }
    }
}
