//! An add-on as a sampler.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mysql_async::{Error, Opts};
use whyso_record::data::{Event, Kind, Reading, SeriesId, SeriesKey, TextRows, Value};

use super::error::AddOnError;
use crate::own_statements::{ControlConnection, OwnStatements};
use crate::sampler::{Failure, Sampler};
use crate::samplers::addon::program::{Program, ProgramEnd, ReadOutcome};
use crate::samplers::addon::spec::{AddOn, Origin};
use crate::samplers::addon::table::Table;
use crate::schedule::Patience;
use crate::sink::{Batch, SeriesCache, Sink};
use crate::sql::Sql;
use crate::stop::Stop;
use crate::text::Machine;

/// What a statement may give; further rows are left out.
const ROWS_MAX: usize = 10_000;

/// What a program gets of the server, in its environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerAccess {
    pub(crate) server: Option<Opts>,
    pub(crate) server_pid: Option<u32>,
}

impl ServerAccess {
    fn give(&self, command: &mut Command, password: bool) {
        command.env_remove("MYSQL_PWD");
        if let Some(pid) = self.server_pid {
            command.env("WHYSO_PID", pid.to_string());
        }
        let Some(opts) = &self.server else { return };
        command.env("WHYSO_HOST", opts.ip_or_hostname()).env("WHYSO_PORT", opts.tcp_port().to_string());
        if let Some(socket) = opts.socket() {
            command.env("WHYSO_SOCKET", socket);
        }
        if let Some(user) = opts.user() {
            command.env("WHYSO_USER", user);
        }
        if password && let Some(password) = opts.pass() {
            command.env("MYSQL_PWD", password);
        }
    }
}

pub(crate) struct AddOnSampler {
    addon: AddOn,
    source: &'static str,
    access: ServerAccess,
    sql: Option<Sql>,
    table: Table,
    /// A program that is read as a stream.
    running: Option<Program>,
    /// When it printed a line last.
    last_line_at: Instant,
    /// CPU time of those programs that have ended.
    ended_cpu_ns: u64,
    running_cpu_ns: u64,
    tick_ns: u64,
    stop: Stop,
}

impl AddOnSampler {
    pub(crate) fn new(addon: AddOn, access: ServerAccess, stop: Stop) -> AddOnSampler {
        let sql = match &access.server {
            Some(opts) if addon.is_sql() => Some(Sql::new(opts, stop.clone())),
            _ => None,
        };
        AddOnSampler {
            // The few add-ons of a recording last as long as the program.
            source: Box::leak(addon.source().into_boxed_str()),
            table: Table::new(&addon),
            addon,
            access,
            sql,
            running: None,
            last_line_at: Instant::now(),
            ended_cpu_ns: 0,
            running_cpu_ns: 0,
            tick_ns: Machine::read().tick_ns,
            stop,
        }
    }

    /// Counts its statements among these.
    pub(crate) fn counted_in(mut self, statements: &OwnStatements) -> AddOnSampler {
        self.sql = self.sql.map(|sql| sql.counted_in(statements));
        self
    }

    fn start(&mut self, argv: &[String]) -> Result<Program, Failure> {
        let [program, arguments @ ..] = argv else {
            return Err(Failure::Absent(format!("{}: it names no program", self.source)));
        };
        // A program that lies next to its file is named by its path from there.
        let path = match &self.addon.folder {
            Some(folder) if program.contains('/') => folder.join(program),
            _ => Path::new(program).to_path_buf(),
        };
        let mut command = Command::new(&path);
        command.args(arguments);
        if let Some(folder) = &self.addon.folder {
            command.current_dir(folder);
        }
        self.access.give(&mut command, self.addon.password);
        for (name, value) in &self.addon.env {
            command.env(name, value);
        }
        self.table.begin();
        self.last_line_at = Instant::now();
        Program::start(command).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Failure::Absent(format!(
                "{}: the program {} can't be started ({error}): install it, or correct `command`",
                self.source,
                path.display()
            )),
            _ => Failure::quick(format!("the program {} can't be started: {error}", path.display())),
        })
    }

    /// Runs the program to its end.
    fn run_once(&mut self, argv: &[String]) -> Result<(), Failure> {
        let mut program = self.start(argv)?;
        let until = Instant::now() + self.addon.timeout;
        let table = &mut self.table;
        let last_read = program.read(until, &self.stop, true, |line| table.line(line));
        let ended = program.end(if last_read == ReadOutcome::Closed { until } else { Instant::now() });
        self.ended_cpu_ns += ended.map_or(0, |ended| ended.cpu_ns);
        match last_read {
            ReadOutcome::Stopped => Err(Failure::Stopped),
            ReadOutcome::Rubbish(what) => Err(slow(format!("{what}: it was ended"))),
            ReadOutcome::Silent => Err(slow(format!("{}: it was ended", self.too_long("it did not end")))),
            ReadOutcome::Closed | ReadOutcome::Lines => match ended {
                Some(ended) if ended.status.success() => Ok(()),
                ended => Err(Failure::quick(died(ended, &mut program))),
            },
        }
    }

    /// Takes what a program that is read as a stream has printed since the last reading. True where there was a line.
    fn listen(&mut self, argv: &[String]) -> Result<bool, Failure> {
        let is_new = self.running.is_none();
        let mut program = match self.running.take() {
            Some(program) => program,
            None => self.start(argv)?,
        };
        let until = match is_new {
            true => Instant::now() + self.addon.timeout,
            false => Instant::now(),
        };
        let table = &mut self.table;
        let mut last_read = ReadOutcome::Silent;
        // A header without a line after it is no sample.
        while table.is_empty() {
            last_read = program.read(until, &self.stop, false, |line| table.line(line));
            if last_read != ReadOutcome::Lines {
                break;
            }
        }
        let outcome = match last_read {
            ReadOutcome::Lines => Ok(true),
            ReadOutcome::Silent if self.last_line_at.elapsed() < self.addon.timeout => Ok(false),
            ReadOutcome::Silent => {
                Err(slow(format!("{}: it was ended", self.too_long("it printed nothing"))))
            }
            ReadOutcome::Stopped => Err(Failure::Stopped),
            ReadOutcome::Rubbish(what) => Err(slow(format!("{what}: it was ended"))),
            ReadOutcome::Closed => {
                let ended = program.end(Instant::now() + Duration::from_millis(100));
                self.ended_cpu_ns += ended.map_or(0, |ended| ended.cpu_ns);
                self.running_cpu_ns = 0;
                return Err(Failure::quick(died(ended, &mut program)));
            }
        };
        match &outcome {
            Ok(has_line) => {
                if *has_line {
                    self.last_line_at = Instant::now();
                }
                self.running_cpu_ns = program.cpu_ns(self.tick_ns);
                self.running = Some(program);
            }
            Err(_) => {
                self.ended_cpu_ns += program.end(Instant::now()).map_or(0, |ended| ended.cpu_ns);
                self.running_cpu_ns = 0;
            }
        }
        outcome
    }

    fn ask(&mut self, query: &str) -> Result<(), Failure> {
        let Some(sql) = &mut self.sql else {
            return Err(Failure::Absent(format!("{}: it asks a server, and none is watched", self.source)));
        };
        let (table, timeout) = (&mut self.table, self.addon.timeout);
        table.begin();
        let outcome = sql.run_within(timeout, async |conn| read_rows(conn, query, timeout, table).await);
        outcome.map_err(|failure| match failure {
            Failure::Absent(why) => Failure::Absent(format!("{}: {why}", self.source)),
            other => other,
        })
    }

    fn too_long(&self, what: &str) -> String {
        format!("{what} within {} s", self.addon.timeout.as_secs_f64())
    }

    fn note_not_numbers(&self, batch: &mut Batch<'_>) {
        if let Some(first) = &self.table.first_not_number {
            batch.absent(format!("{}: values that are no numbers, the first being {first}", self.source));
        }
    }
}

impl Sampler for AddOnSampler {
    fn source(&self) -> &'static str {
        self.source
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let is_sample = match self.addon.from.clone() {
            Origin::Sql(query) => self.ask(&query).map(|()| true)?,
            Origin::Program { argv, stream: false } => self.run_once(&argv).map(|()| true)?,
            Origin::Program { argv, stream: true } => self.listen(&argv)?,
        };
        if let Err(why) = self.table.check() {
            return Err(Failure::Absent(format!("{}: {why}", self.source)));
        }
        self.note_not_numbers(batch);
        if !is_sample {
            batch.nothing_to_read();
        }
        self.table.put(batch);
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.running = None;
        if self.table.not_numbers > 0 {
            batch
                .absent(format!("{}: in all {} values were no numbers", self.source, self.table.not_numbers));
        }
        batch.nothing_to_read();
        Ok(())
    }

    fn others_cpu_ns(&self) -> u64 {
        self.ended_cpu_ns + self.running_cpu_ns
    }
}

fn slow(why: String) -> Failure {
    Failure::Broken { why, patience: Patience::Slow }
}

fn died(ended: Option<ProgramEnd>, program: &mut Program) -> String {
    let how = ended.map_or_else(|| "it closed its output".to_string(), |ended| format!("{}", ended.status));
    match program.complaint() {
        complaint if complaint.is_empty() => format!("the program ended ({how})"),
        complaint => format!("the program ended ({how}): {complaint}"),
    }
}

/// One statement within a transaction that the server itself keeps from writing.
async fn read_rows(
    conn: &mut ControlConnection<'_>,
    query: &str,
    timeout: Duration,
    table: &mut Table,
) -> Result<(), Error> {
    // A server knows one of these or none; one that gives up by itself is not left with a question that nobody waits for.
    let bounds = [
        format!("SET SESSION max_execution_time = {}", timeout.as_millis()),
        format!("SET SESSION max_statement_time = {}", timeout.as_secs_f64()),
    ];
    for bound in bounds {
        match conn.query_drop(bound).await {
            Ok(()) | Err(Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    // MySQL 5.5 has no such transactions: there, the check of the statement's text must do.
    match conn.query_drop("START TRANSACTION READ ONLY").await {
        Ok(()) | Err(Error::Server(_)) => {}
        Err(error) => return Err(error),
    }
    let mut result = conn.query_iter(query).await?;
    let columns = result.columns_ref().iter().map(|column| column.name_str().into_owned()).collect();
    table.header(columns);
    let mut rows = 0;
    while let Some(row) = result.next().await? {
        rows += 1;
        if rows > ROWS_MAX {
            continue;
        }
        let fields: Vec<Option<&str>> =
            (0..row.len()).map(|column| crate::samplers::status::text_of(&row, column)).collect();
        table.row(&fields);
    }
    drop(result);
    conn.query_drop("ROLLBACK").await
}

/// One value of an add-on, with its series.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOnSeries {
    pub metric: String,
    pub instance: String,
    pub kind: Kind,
    pub unit: String,
    pub value: Value,
}

/// Reads an add-on once. Returns what it would record, and what would not be measured.
///
/// # Errors
/// Nothing can be read.
pub fn check(addon: &AddOn, server: Option<Opts>) -> Result<(Vec<AddOnSeries>, Vec<String>), AddOnError> {
    let sink = KeySink::default();
    let mut cache = SeriesCache::default();
    let access = ServerAccess { server, server_pid: None };
    let mut sampler = AddOnSampler::new(addon.clone(), access, Stop::new());
    let source = sampler.source();
    let failed = |why| AddOnError::Reading { source_name: source.to_string(), why };
    let mut batch = Batch::new(&sink, "server", source, &mut cache);
    match sampler.read(&mut batch) {
        Ok(()) => {}
        Err(Failure::Absent(why)) => return Err(AddOnError::Absent(why)),
        Err(Failure::NotHere) => return Err(failed("it is not here".to_string())),
        Err(Failure::Broken { why, .. }) => return Err(failed(why)),
        Err(Failure::Stopped) => return Err(failed("interrupted".to_string())),
    }
    let parts = batch.into_parts();
    let keys = sink.lock();
    let named = parts.values.into_iter().filter_map(|(id, value)| {
        let key = keys.get(id.0 as usize)?;
        Some(AddOnSeries {
            metric: key.metric.clone(),
            instance: key.instance.clone(),
            kind: key.kind,
            unit: key.unit.clone(),
            value,
        })
    });
    Ok((named.collect(), parts.absent.iter().map(ToString::to_string).collect()))
}

/// A sink for one reading, which remembers what its numbers are called.
#[derive(Default)]
struct KeySink {
    keys: Mutex<Vec<SeriesKey>>,
}

impl KeySink {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SeriesKey>> {
        match self.keys.lock() {
            Ok(keys) => keys,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl Sink for KeySink {
    fn series(&self, key: &SeriesKey) -> SeriesId {
        let mut keys = self.lock();
        keys.push(key.clone());
        SeriesId(keys.len() as u32 - 1)
    }
    fn reading(&self, _: Reading) {}
    fn event(&self, _: Event) {}
    fn rows(&self, _: TextRows) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(file: &str) -> (String, Duration) {
        let addon = AddOn::parse(&format!("name = \"a\"\n{file}\n[[column]]\nname = \"x\""), None).unwrap();
        let began = Instant::now();
        (check(&addon, None).unwrap_err().to_string(), began.elapsed())
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_that_it_started() {
        let command = "timeout_ms = 200\ncommand = [\"sh\", \"-c\", \"sleep 77.25 & sleep 77.25\"]";
        let began = Instant::now();
        let (why, took) = failure(command);
        assert!(why.contains("did not end within 0.2 s"), "{why}");
        assert!(took < Duration::from_secs(10), "{took:?}");
        let is_running = || {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let mut words =
                processes.map(|process| std::fs::read(process.path().join("cmdline")).unwrap_or_default());
            words.any(|words| words.starts_with(b"sleep\x0077.25"))
        };
        // A process that was killed is gone as soon as the kernel has come to it.
        while is_running() {
            assert!(began.elapsed() < Duration::from_secs(10), "a child still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn rubbish_is_bounded_and_named() {
        let (why, _) = failure("command = [\"yes\"]");
        assert!(why.contains("more than 1 MiB"), "{why}");
        let (why, _) = failure("command = [\"sh\", \"-c\", \"yes | tr -d '\\\\n'\"]");
        assert!(why.contains("without the end of a line"), "{why}");
        let (why, _) = failure("command = [\"head\", \"-c\", \"100\", \"/dev/zero\"]");
        assert!(why.contains("no text"), "{why}");
    }

    #[test]
    fn a_program_that_dies_is_named_with_its_error() {
        for stream in [false, true] {
            let file = format!("stream = {stream}\ncommand = [\"sh\", \"-c\", \"echo no disk >&2; exit 3\"]");
            let (why, _) = failure(&file);
            assert!(why.contains("exit status: 3") && why.contains("no disk"), "{why}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_reported_as_missing() {
        let (why, _) = failure("command = [\"no-such-program-here\"]");
        assert!(why.contains("no-such-program-here can't be started"), "{why}");
    }

    #[test]
    fn a_statement_without_a_server_is_refused() {
        let addon = AddOn::parse("name = \"a\"\nsql = \"SELECT 1\"", None).unwrap();
        assert!(check(&addon, None).unwrap_err().to_string().contains("none is watched"));
    }

    #[test]
    fn the_examples_that_need_no_server_are_read() {
        for name in ["example", "iostat"] {
            let addon = AddOn::find(name).unwrap();
            let (values, notes) = check(&addon, None).unwrap();
            assert!(!values.is_empty() && notes.is_empty(), "{name}: {notes:?}");
        }
    }

    #[test]
    fn contentions_are_shown_in_microseconds() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let text = "sendbufferpool waiting for lock, contentions: 6000 spins: 489200\n\
                    sendbufferpool waiting for lock, contentions: 6200 spins: 494721\n\
                    Ndb kernel thread 4 is stuck in: Job Handling elapsed=200\n\
                    Watchdog: User time: 82 System time: 668\n";
        std::fs::write(log.path(), text).unwrap();
        let mut addon = AddOn::find("ndb-out-log").unwrap();
        addon.env.push(("NDB_OUT_LOG".to_string(), log.path().display().to_string()));
        let (values, notes) = check(&addon, None).unwrap();
        assert_eq!(notes, Vec::<String>::new());
        let value = |metric: &str, instance: &str| {
            let found = values.iter().find(|series| series.metric == metric && series.instance == instance);
            found.unwrap_or_else(|| panic!("{metric} of {instance} in {values:?}")).value.as_f64()
        };
        // 5,521 spins in 200 contentions, at 1.25 ns a spin.
        assert!((value("us_per_contention", "sendbufferpool") - 0.0345).abs() < 1e-4);
        assert_eq!(value("system_ms", "thread_4"), 668.0);
        assert_eq!(value("user_ms", "thread_4"), 82.0);
    }
}
