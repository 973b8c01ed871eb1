//! A throw-away MariaDB and a sink that keeps what it gets.

#![allow(clippy::disallowed_methods, reason = "a test connects to its own server")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use tempfile::TempDir;
use whyso_record::data::{Event, Reading, SeriesId, SeriesKey, Status, TextRows};
use whyso_watch::Sink;

pub(crate) struct Server {
    folder: TempDir,
    child: Child,
    options: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(&["--skip-networking"])
    }

    pub(crate) fn start_with(options: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--user=root", "--skip-test-db"])
            .arg("--auth-root-authentication-method=normal")
            // A starting server clears its folder of temporary tables, those of others in it too.
            .env("TMPDIR", folder.path())
            .arg(format!("--datadir={}", folder.path().join("data").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("mariadb-install-db: install mariadb-server-core");
        assert!(installed.success());
        let options: Vec<String> = options.iter().map(|option| option.to_string()).collect();
        let child = spawn(&folder, &options);
        let server = Server { folder, child, options };
        server.wait_until_it_answers();
        server
    }

    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.options);
        self.wait_until_it_answers();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn opts(&self) -> Opts {
        self.opts_of("root", None)
    }

    pub(crate) fn opts_of(&self, user: &str, password: Option<&str>) -> Opts {
        let socket = self.folder.path().join("s").display().to_string();
        OptsBuilder::default()
            .socket(Some(socket))
            .user(Some(user))
            .pass(password)
            .db_name(Some("does_not_exist"))
            .into()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Runs `work` on a connection without a schema.
    pub(crate) fn ask<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> T) -> T {
        let runtime = runtime();
        let opts = OptsBuilder::from_opts(self.opts()).db_name(None::<String>);
        runtime.block_on(async {
            let mut conn = Conn::new(opts).await.unwrap();
            let outcome = work(&mut conn).await;
            conn.disconnect().await.unwrap();
            outcome
        })
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.ask(async |conn| conn.query_drop(sql).await.unwrap());
    }

    fn wait_until_it_answers(&self) {
        let opts = OptsBuilder::from_opts(self.opts()).db_name(None::<String>);
        let opts = Opts::from(opts);
        let answers = || runtime().block_on(async { Conn::new(opts.clone()).await.is_ok() });
        wait_for("the server answers", answers);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &TempDir, options: &[String]) -> Child {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let sbin = PathBuf::from("/usr/sbin/mariadbd");
    let program = match sbin.exists() {
        true => sbin,
        false => PathBuf::from("mariadbd"),
    };
    Command::new(program)
        .args(["--no-defaults", "--user=root"])
        .args(options)
        .arg(format!("--datadir={}", path("data")))
        .arg(format!("--socket={}", path("s")))
        .arg("--innodb-buffer-pool-size=16M")
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Waits up to 30 s.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Default)]
pub(crate) struct MemorySink(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    keys: Vec<SeriesKey>,
    readings: Vec<Reading>,
    events: Vec<Event>,
    rows: Vec<TextRows>,
}

impl MemorySink {
    /// Readings of `source` with this status.
    pub(crate) fn count(&self, source: &str, status: Status) -> usize {
        let content = self.0.lock().unwrap();
        let wanted = |reading: &&Reading| reading.source == source && reading.status == status;
        content.readings.iter().filter(wanted).count()
    }

    pub(crate) fn events(&self, kind: &str, text_start: &str) -> Vec<String> {
        let content = self.0.lock().unwrap();
        let wanted = |event: &&Event| event.kind == kind && event.text.starts_with(text_start);
        let texts = content.events.iter().filter(wanted);
        texts.map(|event| event.text.clone()).collect()
    }

    pub(crate) fn rows(&self, source: &str) -> usize {
        let content = self.0.lock().unwrap();
        let wanted = content.rows.iter().filter(|rows| rows.source == source);
        wanted.map(|rows| rows.rows.len()).sum()
    }

    /// Every cell of a column of `source`, those that are not NULL.
    pub(crate) fn cells(&self, source: &str, column: &str) -> Vec<String> {
        let content = self.0.lock().unwrap();
        let mut cells = Vec::new();
        for rows in content.rows.iter().filter(|rows| rows.source == source) {
            let place = rows.columns.iter().position(|name| name == column).unwrap();
            cells.extend(rows.rows.iter().filter_map(|row| row[place].clone()));
        }
        cells
    }

    /// "host source metric instance" → last value.
    pub(crate) fn last_values(&self) -> BTreeMap<String, f64> {
        let content = self.0.lock().unwrap();
        let mut last = BTreeMap::new();
        for reading in &content.readings {
            assert!(reading.begin_ns <= reading.end_ns, "{reading:?}");
            for (id, value) in &reading.values {
                let key = &content.keys[id.0 as usize];
                assert_eq!(key.source, reading.source);
                let name = [&key.host, &key.source, &key.metric, &key.instance].map(String::as_str);
                last.insert(name.join(" ").trim_end().to_string(), value.as_f64());
            }
        }
        last
    }
}

impl Sink for MemorySink {
    fn series(&self, key: &SeriesKey) -> SeriesId {
        let mut content = self.0.lock().unwrap();
        let position = content.keys.iter().position(|series| series == key);
        let index = position.unwrap_or_else(|| {
            content.keys.push(key.clone());
            content.keys.len() - 1
        });
        SeriesId(index as u32)
    }
    fn reading(&self, reading: Reading) {
        self.0.lock().unwrap().readings.push(reading);
    }
    fn event(&self, event: Event) {
        self.0.lock().unwrap().events.push(event);
    }
    fn rows(&self, rows: TextRows) {
        self.0.lock().unwrap().rows.push(rows);
    }
}
