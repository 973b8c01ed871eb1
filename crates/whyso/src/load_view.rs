//! The output of a load: a table whose last line is redrawn in place on a terminal, plain lines in a pipe, and files.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use whyso_control::{IntervalNews, Listener, News, Running};
use whyso_record::data::LoadInterval;
use whyso_record::run::Level;
use whyso_report::load::{CSV_HEADER, HdrLog, LoadResult, Row, Table, csv_rows, interval_line, summary};

use crate::load_args::OutputArgs;
use crate::progress::Bars;
use crate::terminal;

/// The columns of the table.
pub(crate) struct TableColumns {
    pub(crate) is_open: bool,
    pub(crate) percentiles: Vec<f64>,
    /// Characters of the longest name, where there are two workloads.
    pub(crate) workload_width: Option<usize>,
}

pub(crate) struct LoadView {
    bars: Bars,
    json: bool,
    /// Draw the running level's line in place.
    in_place: bool,
    width: usize,
    shown: TableColumns,
    table: Table,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    header_printed: bool,
    /// A line is on the terminal that is to be drawn over.
    line_in_place: bool,
    /// The last interval's whole transactions, of the running level.
    last: Option<LoadInterval>,
    backlog: Option<u64>,
    lines: Option<Lines>,
    files: Files,
    /// Why a file could not be written; the first such reason.
    failed: Option<anyhow::Error>,
}

/// Lines of several seconds.
struct Lines {
    seconds: u32,
    gathered: Vec<LoadInterval>,
}

#[derive(Default)]
struct Files {
    origin_ns: Option<i64>,
    csv: Option<BufWriter<File>>,
    hdr_log: Option<File>,
    hdr_begun: Option<HdrLog<BufWriter<File>>>,
}

impl LoadView {
    /// # Errors
    /// Where a file can't be created.
    pub(crate) fn new(args: &OutputArgs, shown: TableColumns) -> Result<LoadView> {
        let create =
            |path: &Path| File::create(path).with_context(|| format!("can't write {}", path.display()));
        let mut files = Files::default();
        if let Some(path) = &args.csv {
            let mut csv = BufWriter::new(create(path)?);
            writeln!(csv, "{CSV_HEADER}").with_context(|| format!("can't write {}", path.display()))?;
            files.csv = Some(csv);
        }
        if let Some(path) = &args.hdr_log {
            files.hdr_log = Some(create(path)?);
        }
        let width = terminal::width();
        let table = Table::new(width, shown.is_open, &shown.percentiles, shown.workload_width);
        let lines = args.interval.map(|seconds| Lines { seconds, gathered: Vec::new() });
        let in_place = std::io::stdout().is_terminal() && !args.json && lines.is_none();
        let state = State { files, lines, ..State::default() };
        Ok(LoadView {
            bars: Bars::new(),
            json: args.json,
            in_place,
            width,
            shown,
            table,
            state: Mutex::new(state),
        })
    }

    pub(crate) fn clear(&self) {
        self.bars.clear();
    }

    /// What comes after the last level.
    ///
    /// # Errors
    /// Where standard output is gone.
    pub(crate) fn print_end(&self, result: &LoadResult) -> Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = crate::out::stdout();
        if state.lines.is_some() {
            writeln!(out, "\n{}", self.table.header())?;
            for (level, verdict) in &result.levels {
                writeln!(out, "{}", self.table.row(&Row::of_level(level, verdict)))?;
            }
        }
        let text = summary(result, self.width);
        if !text.is_empty() {
            write!(out, "{text}")?;
        }
        Ok(())
    }

    /// Completes the files.
    ///
    /// # Errors
    /// Where one could not be written.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if let Some(csv) = &mut state.files.csv {
            csv.flush().context("can't write the CSV file")?;
        }
        if let Some(log) = &mut state.files.hdr_begun {
            log.flush().context("can't write the HdrHistogram log")?;
        }
        Ok(())
    }

    /// Draws a line in the place of the one before; `is_final`: and leaves it there.
    fn draw(&self, state: &mut State, line: &str, is_final: bool) {
        // The line of before is cleared by a sequence of our own.
        let mut out = crate::out::own();
        let line = whyso_words::terminal::escape(line);
        let mut text = String::new();
        if !state.header_printed {
            text.push_str(&format!("{}\n", self.table.header()));
            state.header_printed = true;
        }
        if state.line_in_place {
            text.push_str("\r\x1b[2K");
        }
        if is_final {
            text.push_str(&format!("{line}\n"));
        } else {
            // A line that wraps could not be drawn over.
            text.extend(line.chars().take(self.width.saturating_sub(1)));
        }
        state.line_in_place = !is_final;
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn running(&self, running: Running) {
        if self.json || !self.in_place {
            if self.json {
                self.bars.hear(News::Level(running));
            }
            return;
        }
        self.bars.clear();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = running.bound.saturating_sub(running.elapsed).as_secs();
        let remark =
            if running.measuring { whyso_words::seconds(left as f64) } else { "warm-up".to_string() };
        let times = state.last.as_ref().filter(|last| last.count > 0);
        let row = Row {
            users: running.users,
            rate_per_s: running.rate_per_s,
            transactions_per_s: running.transactions_per_s,
            queries_per_s: running.queries_per_s,
            mean_ms: times.map(|last| last.response_sum_ns as f64 / last.count as f64 / 1e6),
            percentiles_ms: times.map_or(Vec::new(), |last| self.percentiles(last)),
            max_ms: times.map(|last| last.response_max_ns as f64 / 1e6),
            backlog: state.backlog,
            errors: running.errors,
            remark,
            ..Row::default()
        };
        let line = self.table.row(&row);
        self.draw(&mut state, &line, false);
    }

    fn percentiles(&self, interval: &LoadInterval) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        for &percentile in &self.shown.percentiles {
            let upper_ns = whyso_series::quantile_of_buckets(&interval.response, percentile / 100.0);
            found.push((percentile, upper_ns.unwrap_or(0).min(interval.response_max_ns) as f64 / 1e6));
        }
        found
    }

    fn level_done(&self, level: &Level) {
        if self.json {
            self.bars.hear(News::LevelDone(level));
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = None;
        state.backlog = None;
        if let Some(lines) = &mut state.lines {
            lines.gathered.clear();
            return;
        }
        let row = self.table.row(&Row::of_level(level, &whyso_query::judge_alone(level)));
        self.draw(&mut state, &row, true);
    }

    fn interval(&self, news: &IntervalNews) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.files.write(news) {
            state.failed.get_or_insert(error);
        }
        let Some(transactions) = news.rows.first() else { return };
        if let Some(lines) = &mut state.lines {
            lines.gathered.push(transactions.clone());
            let begin_ns = lines.gathered[0].begin_ns;
            let is_full =
                transactions.end_ns - begin_ns >= i64::from(lines.seconds) * 1_000_000_000 - 500_000_000;
            if is_full {
                let gathered = std::mem::take(&mut lines.gathered);
                let origin_ns = state.files.origin_ns.unwrap_or(begin_ns);
                let users =
                    if news.users == 1 { "1 user".to_string() } else { format!("{} users", news.users) };
                let name = if self.shown.workload_width.is_some() {
                    format!("{} ", news.workload)
                } else {
                    String::new()
                };
                let level = format!("{name}{users}");
                let line = interval_line(&gathered, &level, news.backlog, origin_ns, &self.shown.percentiles);
                if self.json {
                    print_stderr!("{line}");
                } else {
                    let _ = writeln!(crate::out::stdout(), "{line}");
                }
            }
        }
        state.last = Some(transactions.clone());
        state.backlog = news.backlog;
    }
}

impl Files {
    fn write(&mut self, news: &IntervalNews) -> Result<()> {
        let Some(first) = news.rows.first() else { return Ok(()) };
        let origin_ns = *self.origin_ns.get_or_insert(first.begin_ns);
        if let Some(csv) = &mut self.csv {
            let rows = csv_rows(&news.rows, origin_ns, &news.workload, news.users, news.backlog);
            csv.write_all(rows.as_bytes()).context("can't write the CSV file")?;
        }
        if let Some(file) = self.hdr_log.take() {
            // Monotonic time has no epoch: the wall clock is read once, and what has passed since is subtracted.
            let passed_ns = whyso_clock::monotonic_ns() - origin_ns;
            let origin_wall_s = (whyso_clock::wall_ns() - passed_ns) as f64 / 1e9;
            let log = HdrLog::begin(BufWriter::new(file), origin_ns, origin_wall_s);
            self.hdr_begun = Some(log.context("can't write the HdrHistogram log")?);
        }
        if let Some(log) = &mut self.hdr_begun {
            log.write(&news.rows).context("can't write the HdrHistogram log")?;
        }
        Ok(())
    }
}

impl Listener for LoadView {
    fn hear(&self, news: News<'_>) {
        match news {
            News::Level(running) => self.running(running),
            News::Interval(news) => self.interval(news),
            News::LevelDone(level) => self.level_done(level),
            other => self.bars.hear(other),
        }
    }
}
