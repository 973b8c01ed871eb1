//! Everything that reads a recording.

use std::io::{self, Write};
use std::path::Path;

use whyso_explain::model::Explanation;
use whyso_query::{CommandFilter, ForReport, ThreadFilter};
use whyso_record::run::Window;
use whyso_record::{Recording, backup_to, check_run, export, list_runs, sql};
use whyso_report::html;

/// Counts bytes, so that nothing is thrown away unmade.
#[derive(Default)]
pub(super) struct ByteCount(pub(super) Vec<u8>);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a recording as the program's commands do. Errors are fine.
pub(super) fn everything(dir: &Path) {
    let Some(runs) = dir.parent() else { return };
    for summary in list_runs(runs).unwrap_or_default() {
        let _ = whyso_report::run_line(&summary);
    }
    if let Ok(views) = sql::views(runs, &sql::Selection::default(), Path::new("catalogue.parquet")) {
        check_sql(&views.sql);
    }
    let _ = check_run(dir);
    let _ = backup_to(&[dir.to_path_buf()], io::sink());
    let Some(recording) = tables(dir) else { return };
    let filter = export::Filter::default();
    let _ = export::to_csv(&recording, &mut io::sink(), &filter);
    let _ = export::to_parquet(&recording, ByteCount::default(), &filter);
    let window = recording.run().levels.first().map(|level| level.window);
    views(&recording, window.or(recording.window()).unwrap_or(Window { begin_ns: 0, end_ns: 1 }));
    let Ok(explanation) = whyso_query::explain(&recording) else { return };
    report(&recording, &explanation);
}

/// Opens a recording, and reads each of its tables.
pub(super) fn tables(dir: &Path) -> Option<Recording> {
    let recording = Recording::open(dir).ok()?;
    let ids: Vec<_> = recording.series().iter().map(|info| info.id).collect();
    let _ = recording.samples_each(&ids, None, |_, samples| drop(samples));
    let window = recording.window().unwrap_or(Window { begin_ns: i64::MIN, end_ns: i64::MAX });
    let middle_ns = window.begin_ns / 2 + window.end_ns / 2;
    let _ = recording.window_values(&ids, &[window, Window { end_ns: middle_ns, ..window }], |_, _| {});
    for id in ids.iter().take(40) {
        let _ = recording.samples(*id, Some(Window { end_ns: middle_ns, ..window }));
        let _ = recording.envelope(*id, window, 7);
    }
    let _ = (recording.events().is_ok(), recording.load(None).is_ok(), recording.load(Some(window)).is_ok());
    let _ = (recording.threads().is_ok(), recording.state_times().is_ok());
    let _ =
        (recording.stacks(None).is_ok(), recording.waits(Some(window)).is_ok(), recording.frames().is_ok());
    let _ = (recording.commands(None).is_ok(), recording.statements().is_ok());
    let _ = recording.timeline(&[window.begin_ns, middle_ns, window.end_ns]);
    for source in recording.row_sources() {
        let _ = recording.rows(&source, Some(window));
    }
    let _ = recording.reopen();
    Some(recording)
}

/// The views of `whyso threads`, `timeline`, `functions`, `locks`, `statements` and `compare`.
fn views(recording: &Recording, window: Window) {
    let any = ThreadFilter::default();
    let _ = whyso_query::threads_in(recording, window);
    let _ = whyso_query::timeline_in(recording, None, 60, &any, 5);
    let _ = whyso_query::timeline_in(recording, Some(window), 10, &any, 5);
    for metric in whyso_query::stack_metrics() {
        let _ = whyso_query::profile_in(recording, window, &[metric.to_string()], &any);
    }
    let _ = whyso_query::states_by_role(recording, window);
    let _ = whyso_query::locks_in(recording, window);
    let _ = whyso_query::commands_in(recording, window, &CommandFilter::default());
    let _ = whyso_query::timing_in(recording, window);
    let _ = whyso_query::thread_disagreement(recording);
}

/// Makes reports of all formats.
///
/// # Panics
/// Text of a recording ends a script element, or an object is no JSON.
pub(super) fn report(recording: &Recording, explanation: &Explanation) {
    let run = recording.run();
    let _ = whyso_report::terminal(run, explanation);
    let _ = whyso_report::why(explanation);
    let _ = whyso_report::svg(run, explanation);
    let _ = whyso_report::json(run, explanation, recording.dir()).to_string();
    let Ok(evidence) = ForReport::new(recording, &[]) else { return };
    evidence.lend(None, |context| {
        let markdown = whyso_report::markdown(run, explanation, context);
        assert!(!markdown.to_lowercase().contains("<script"), "markdown that holds a script");
        let Ok(payload) = whyso_report::payload::build(recording, explanation, context) else { return };
        assert!(!payload.head_json.contains('<'), "a head that ends its script element");
        let head: Result<serde_json::Value, _> = serde_json::from_str(&payload.head_json);
        assert!(head.is_ok(), "a head that is no JSON: {head:?}");
        let _ = html::write(recording, explanation, context, &mut io::sink());
    });
}

/// Statements with whole quotes, whatever the names in them.
///
/// # Panics
/// A quote does not end.
fn check_sql(sql: &str) {
    let mut quote = None;
    for letter in sql.chars() {
        assert_ne!(letter, '\0', "SQL that ends in the middle");
        match quote {
            // A doubled quote ends a text and begins the next.
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            _ => {}
        }
    }
    assert_eq!(quote, None, "a quote that does not end: {sql}");
    assert!(sql.trim_end().ends_with(';'));
}
