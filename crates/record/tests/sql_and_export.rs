//! Other tools' ways in: SQL views and exports.

use std::path::Path;

use whyso_record::data::{Event, Kind, LoadInterval, Reading, SeriesKey, Status, TextRows, Value};
use whyso_record::export::{Filter, to_csv, to_parquet};
use whyso_record::run::{RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Recording, sql};

const S: i64 = 1_000_000_000;

fn record(dir: &Path, with_load: bool) {
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(dir, options).unwrap();
    let key = |metric: &str, instance: &str, kind| {
        let [host, source, metric, instance, unit] =
            ["server", "disk", metric, instance, "bytes"].map(str::to_string);
        SeriesKey { host, source, metric, instance, kind, unit }
    };
    let read = recorder.series(&key("read_bytes", "sda, \"boot\"", Kind::Counter));
    let busy = recorder.series(&key("busy_ratio", "", Kind::Gauge));
    for second in 0..20 {
        let values = vec![(read, Value::Int(second * 4096)), (busy, Value::Float(0.25))];
        let (begin_ns, end_ns) = (second * S, second * S + 1000);
        recorder.reading(Reading { source: "disk".into(), begin_ns, end_ns, status: Status::Ok, values });
    }
    if with_load {
        recorder.load(LoadInterval {
            begin_ns: 0,
            end_ns: S,
            level: 0,
            measured: true,
            statement: "commit".into(),
            count: 2,
            rows: 0,
            errors: vec![("1213 (40001)".into(), 1)],
            response_sum_ns: 10,
            service_sum_ns: 9,
            response_max_ns: 6,
            response: vec![(5, 1), (6, 1)],
            service: vec![(5, 2)],
        });
        recorder.event(Event { t_ns: 5, host: "client".into(), kind: "note".into(), text: "it's".into() });
        recorder.rows(TextRows {
            source: "digests".into(),
            t_ns: S,
            columns: vec!["DIGEST".into()],
            rows: vec![vec![Some("ab".into())]],
        });
    }
    let id = dir.file_name().unwrap().to_str().unwrap().to_string();
    recorder.set_run(&RunInfo {
        id,
        ended: Some(RunEnd::CutShort { at_ns: 1, why: "it's full".into() }),
        ..RunInfo::default()
    });
    recorder.finish().unwrap();
}

#[test]
fn an_export_holds_what_its_filter_takes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    record(&dir, false);
    let recording = Recording::open(&dir).unwrap();
    let mut csv = Vec::new();
    let window = Some(Window { begin_ns: 3 * S, end_ns: 5 * S });
    let filter = Filter { metric: Some("read_bytes".into()), window, ..Filter::default() };
    assert_eq!(to_csv(&recording, &mut csv, &filter).unwrap(), 2);
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "t_ns,host,source,metric,instance,kind,unit,value\n\
         3000001000,server,disk,read_bytes,\"sda, \"\"boot\"\"\",counter,bytes,12288\n\
         4000001000,server,disk,read_bytes,\"sda, \"\"boot\"\"\",counter,bytes,16384\n"
    );
    let mut parquet = Vec::new();
    assert_eq!(to_parquet(&recording, &mut parquet, &Filter::default()).unwrap(), 40);
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let nothing = Filter { source: Some("cpu".into()), ..Filter::default() };
    assert_eq!(to_csv(&recording, &mut Vec::new(), &nothing).unwrap(), 0);
    assert_eq!(to_parquet(&recording, Vec::new(), &nothing).unwrap(), 0);
}

#[test]
fn every_view_is_there_whatever_the_runs_hold() {
    let folder = tempfile::tempdir().unwrap();
    let empty = sql::views(folder.path());
    for view in
        ["runs", "levels", "anchors", "\"series\"", "\"samples\"", "\"load\"", "\"events\"", "readings"]
    {
        assert!(empty.contains(&format!("CREATE OR REPLACE VIEW {view} AS")), "{view}");
    }
    assert!(!empty.contains("read_parquet"));
    record(&folder.path().join("bare"), false);
    record(&folder.path().join("it's full"), true);
    let views = sql::views(folder.path());
    assert!(views.contains("VIEW \"rows_digests\" AS"));
    assert!(views.contains("it''s full/samples-000001.parquet'"));
    assert!(views.contains("bare/samples-000001.parquet'"));
    assert!(!views.contains("bare/load"));
    // To be tried in a real DuckDB, where there is one: `KEEP_VIEWS=FILE`.
    if let Ok(file) = std::env::var("KEEP_VIEWS") {
        std::fs::write(file, views).unwrap();
        let path = folder.keep();
        println!("the folder {} stays", path.display());
    }
}
