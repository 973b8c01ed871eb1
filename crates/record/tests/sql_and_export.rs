//! Other tools' ways in: SQL views and exports.

use std::path::Path;

use whyso_clock::Anchor;
use whyso_record::data::{Event, Kind, LoadInterval, Reading, SeriesKey, Status, TextRows, Value};
use whyso_record::export::{Filter, to_csv, to_parquet};
use whyso_record::run::{RunEnd, RunInfo, Window};
use whyso_record::sql::{Selection, Views};
use whyso_record::{Options, Recorder, Recording, sql};

const S: i64 = 1_000_000_000;
/// The wall's time at the begin of the recordings.
const WALL_NS: i64 = 1_790_000_000 * S;

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
        anchors: [0, 20]
            .map(|second| Anchor {
                monotonic_ns: second * S,
                wall_ns: WALL_NS + second * S,
                boot_id: String::new(),
            })
            .to_vec(),
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
    let catalogue = Path::new("it's/catalogue.parquet");
    let all = |runs: &Path| sql::views(runs, &Selection::default(), catalogue).unwrap();
    let empty = all(folder.path()).sql;
    for view in
        ["runs", "levels", "anchors", "\"series\"", "\"samples\"", "\"load\"", "\"events\"", "readings"]
    {
        assert!(empty.contains(&format!("CREATE OR REPLACE VIEW {view} AS")), "{view}");
    }
    assert!(!empty.contains("getvariable"), "no file is opened where there is none");
    record(&folder.path().join("bare"), false);
    record(&folder.path().join("it's full"), true);
    let Views { sql: views, runs, files, .. } = all(folder.path());
    assert!(views.contains("VIEW \"rows_digests\" AS"));
    assert!(views.contains("read_parquet('it''s/catalogue.parquet')"));
    assert_eq!((runs, views.matches("getvariable('whyso_samples_").count()), (2, 1), "{views}");
    assert!(files > 10, "{files}");
}

#[test]
fn a_selection_leaves_out_runs_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let ids = ["one", "two", "three"];
    ids.iter().for_each(|id| record(&folder.path().join(id), *id == "two"));
    let found = |selection: &Selection| {
        let views = sql::views(folder.path(), selection, Path::new("catalogue.parquet")).unwrap();
        (views.runs, views.files, views.sql.contains("rows_digests"))
    };
    let (runs, files, has_rows) = found(&Selection::default());
    assert_eq!((runs, has_rows), (3, true));
    let named = |ids: &[&str]| Selection {
        runs: Some(ids.iter().map(|id| id.to_string()).collect()),
        ..Selection::default()
    };
    let (one, two) = (found(&named(&["one"])), found(&named(&["two"])));
    assert_eq!((one.0, two.0, one.2, two.2), (1, 1, false, true));
    assert_eq!(one.1 * 2 + two.1, files);
    assert_eq!(found(&named(&["one", "none"])), one);
    assert_eq!(found(&named(&[])), (0, 0, false));

    // Readings begin at WALL_NS and take 20 seconds, the load one second.
    let from = |since: i64, until: i64| Selection {
        since_wall_ns: Some(WALL_NS + since * S),
        until_wall_ns: Some(WALL_NS + until * S),
        ..Selection::default()
    };
    assert_eq!(found(&from(0, 20)).1, files);
    let (runs, later, has_rows) = found(&from(10, 15));
    assert!(runs == 3 && later < files && !has_rows, "{later} of {files}");
    assert_eq!(found(&from(40, 50)).0, 0);
    assert_eq!(found(&from(-20, -10)).0, 0);
}
