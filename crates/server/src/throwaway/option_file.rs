//! A user's own option file for a throw-away server: which of its settings point outside the server's
//! folder, and what its data depends on.

use std::path::{Path, PathBuf};

use crate::dsn::unquote;
use crate::error::{Error, Result, io};

/// Files that one option file may include, in all.
const MAX_FILES: usize = 64;

/// Options that name a path which the server writes to. It writes into the server's folder instead.
const WRITTEN: [&str; 17] = [
    "log_bin",
    "log_bin_index",
    "log_basename",
    "relay_log",
    "relay_log_index",
    "relay_log_info_file",
    "general_log_file",
    "log",
    "slow_query_log_file",
    "log_slow_query_file",
    "log_slow_queries",
    "innodb_undo_directory",
    "innodb_temp_data_file_path",
    "innodb_tmpdir",
    "innodb_doublewrite_dir",
    "aria_log_dir_path",
    "slave_load_tmpdir",
];

/// Settings of the server's groups, in the order in which they stand; names with underscores.
pub(crate) fn server_settings(path: &Path) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    let mut files_left = MAX_FILES;
    read(path, &mut settings, &mut files_left)?;
    Ok(settings)
}

fn read(path: &Path, settings: &mut Vec<(String, String)>, files_left: &mut usize) -> Result<()> {
    if *files_left == 0 {
        return Err(Error::Binary(format!("the option file '{}' includes too many others", path.display())));
    }
    *files_left -= 1;
    let text = std::fs::read_to_string(path).map_err(io("cannot read the option file", path))?;
    let mut of_server = false;
    for line in text.lines().map(str::trim) {
        if let Some(folder) = line.strip_prefix("!includedir") {
            for file in files_of(Path::new(folder.trim())) {
                read(&file, settings, files_left)?;
            }
        } else if let Some(file) = line.strip_prefix("!include") {
            read(Path::new(file.trim()), settings, files_left)?;
        } else if let Some(group) = line.strip_prefix('[') {
            let group = group.split(']').next().unwrap_or("").trim();
            of_server =
                ["mysqld", "mariadbd", "mariadb", "server", "mysql_server", "galera"].iter().any(|name| {
                    // also [mysqld-8.0] and [mariadb-10.11]
                    group == *name || group.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
                });
        } else if of_server && !line.is_empty() && !line.starts_with(['#', ';']) {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let name = name.trim().replace('-', "_").to_lowercase();
            let name = name.strip_prefix("loose_").unwrap_or(&name).to_string();
            settings.push((name, unquote(value.trim())));
        }
    }
    Ok(())
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cnf" || extension == "ini"));
    files.sort();
    files
}

/// Options that bring what would be written elsewhere into `folder`.
pub(super) fn relocations(settings: &[(String, String)], folder: &Path) -> Vec<String> {
    let mut options = Vec::new();
    for (name, value) in settings {
        if !value.contains('/') || !WRITTEN.contains(&name.as_str()) {
            continue;
        }
        let is_folder = name.ends_with("dir") || name.ends_with("directory") || name.ends_with("dir_path");
        let file_name = Path::new(value).file_name().unwrap_or_default();
        let relocated = if is_folder { folder.to_path_buf() } else { folder.join(file_name) };
        options.push(format!("--{name}={}", relocated.display()));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_file_is_read_with_what_it_includes_and_its_paths_are_brought_home() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("my.cnf");
        let included = folder.path().join("conf.d");
        std::fs::create_dir(&included).unwrap();
        std::fs::write(
            included.join("b.cnf"),
            "[mariadb-10.11]\nlog-bin=/var/lib/mysql/binlog\n[client]\nport=1\n",
        )
        .unwrap();
        std::fs::write(included.join("c.txt"), "[mysqld]\nignored=1\n").unwrap();
        let text = format!(
            "[mysqld]\ninnodb-page-size = 8k # small\nskip-log-bin\nslow_query_log_file='/var/log/slow.log'\n!includedir {}\n[mysqld_safe]\nnice=1\n",
            included.display()
        );
        std::fs::write(&main, text).unwrap();
        let settings = server_settings(&main).unwrap();
        let names: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            names,
            [
                ("innodb_page_size", "8k"),
                ("skip_log_bin", ""),
                ("slow_query_log_file", "/var/log/slow.log"),
                ("log_bin", "/var/lib/mysql/binlog")
            ]
        );
        assert_eq!(
            relocations(&settings, Path::new("/t/data")),
            ["--slow_query_log_file=/t/data/slow.log", "--log_bin=/t/data/binlog"]
        );
    }

    #[test]
    fn a_file_that_includes_itself_comes_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.cnf");
        std::fs::write(&file, format!("!include {}\n", file.display())).unwrap();
        assert!(server_settings(&file).unwrap_err().to_string().contains("includes too many others"));
    }
}
