//! What the tests share: a small throw-away server of the machine's own MariaDB.

use std::path::{Path, PathBuf};

use mysql_async::prelude::Queryable;
use whyso_server::{Dsn, StartSpec, find};

/// On a disk: /tmp may lie in memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

pub(crate) fn spec(parent: &Path) -> StartSpec {
    let mut spec = StartSpec::new(find(None).unwrap());
    spec.parent_dir = Some(parent.to_path_buf());
    spec.set =
        vec![("innodb_log_file_size".into(), "16M".into()), ("innodb_buffer_pool_size".into(), "64M".into())];
    spec
}

/// Runs statements one by one.
#[allow(dead_code, reason = "not every test program runs statements")]
pub(crate) async fn run(dsn: &Dsn, statements: &[&str]) {
    let mut connection = dsn.connect_without_schema().await.unwrap();
    for statement in statements {
        connection.query_drop(*statement).await.unwrap();
    }
    connection.disconnect().await.unwrap();
}

/// The undo journals in a folder; their locks stay in the same folder.
#[allow(dead_code)] // not every test file changes settings
pub(crate) fn journals_in(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}
