//! Scripts that others wrote for sysbench, from end to end: the bundled ones, and one like Percona's sysbench-tpcc.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::Place;
use common::sysbench::{Ran, Server, line_shape};

/// Scripts of Debian's package over the tables that `oltp_read_write prepare` makes.
const OVER_SBTEST: [&str; 10] = [
    "oltp_read_write",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
];

#[test]
fn a_script_like_the_tpcc_one_prepares_in_parallel_runs_and_checks() {
    let server = Server::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/sysbench/tests/orders.lua");
    let script = script.to_str().unwrap();
    let with = |words: &[&str]| server.sysbench(&[&[script, "--threads=4", "--scale=2"][..], words].concat());
    // It waits longer for its tables than a turn may keep others waiting: nobody waits for it.
    let prepared = with(&["--turn-timeout=1", "--engine=epoll", "prepare"]);
    prepared.expect(0, &["loading warehouse 1", "loading warehouse 2"]);
    assert_eq!(prepared.err, "");
    let ran = with(&["--time=2", "--report-interval=1", "run"]);
    ran.expect(0, &["[ 1s ] thds: 4 tps: ", "SQL statistics:", "Threads fairness:"]);
    assert!(ran.number("transactions:") > 10.0, "{}", ran.out);
    let ran = with(&["--time=2", "--report-interval=1", "--report_csv=yes", "--isolation=RC", "run"]);
    ran.expect(0, &["\n1,4,"]);
    with(&["check"]).expect(0, &["warehouse 1 is consistent", "warehouse 2 is consistent"]);
    with(&["cleanup"]).expect(0, &[]);
    assert_eq!(
        server.own.sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest'"),
        "0"
    );
}

#[test]
fn every_bundled_script_runs_as_it_is_in_every_mode() {
    let server = Server::start();
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        let with = |words: &[&str]| {
            server.sysbench(&[&[mode, "--table-size=500", "--threads=4"][..], words].concat())
        };
        let prepared = with(&["oltp_read_write", "--tables=2", "prepare"]);
        prepared.expect(0, &["Creating a secondary index on 'sbtest2'..."]);
        assert_eq!(server.own.sql("SELECT COUNT(*) FROM sbtest.sbtest2"), "500");
        for test in OVER_SBTEST {
            let tables = if test.starts_with("select_") { "--tables=1" } else { "--tables=2" };
            let ran = with(&[test, tables, "--events=200", "--time=0", "run"]);
            ran.expect(0, &[]);
            assert_eq!(ran.number("transactions:"), 200.0, "{test} {mode}\n{}", ran.out);
        }
        with(&["oltp_read_write", "--tables=2", "cleanup"]).expect(0, &["Dropping table 'sbtest1'..."]);
        for test in ["select_random_points", "select_random_ranges"] {
            with(&[test, "prepare"]).expect(0, &["Creating table 'sbtest1'..."]);
            with(&[test, "cleanup"]).expect(0, &["Dropping table 'sbtest1'..."]);
        }
    }
}

#[test]
fn the_bulk_insert_script_inserts_a_row_an_event() {
    let server = Server::start();
    let with = |words: &[&str]| server.sysbench(&[&["bulk_insert", "--threads=2"][..], words].concat());
    with(&["prepare"]).expect(0, &["Creating table 'sbtest2'..."]);
    let ran = with(&["--events=150000", "--time=0", "run"]);
    ran.expect(0, &[]);
    assert_eq!(ran.number("transactions:"), 150_000.0, "{}", ran.out);
    let rows = "SELECT (SELECT COUNT(*) FROM sbtest.sbtest1) + (SELECT COUNT(*) FROM sbtest.sbtest2)";
    assert_eq!(server.own.sql(rows), "150000");
    // An event is a row that is put into a buffer: quick, but not done in no time.
    let sum_ms = ran.number("sum:");
    assert!(sum_ms > 1.0, "{}", ran.out);
    with(&["cleanup"]).expect(0, &["Dropping table 'sbtest2'..."]);
}

#[test]
fn reports_have_the_layout_of_sysbench_s_own() {
    let server = Server::start();
    let common =
        ["--tables=2", "--table-size=500", "--threads=4", "--events=100", "--time=0", "--rand-seed=3"];
    server.sysbench(&[&common[..], &["oltp_read_write", "prepare"]].concat()).expect(0, &[]);
    let arguments = [&common[..], &["oltp_read_write", "--histogram", "run"]].concat();
    let (theirs, ours) = (server.real_sysbench(&arguments), server.sysbench(&arguments));
    assert_eq!(layout(&ours.out), layout(&theirs.out));
}

/// A report without its first line, its numbers and the histogram's lines, whose number depends on the latencies.
fn layout(report: &str) -> Vec<String> {
    report.lines().skip(1).filter(|line| !line.contains(" |")).map(line_shape).collect()
}

/// Says what protects and what compresses its connection.
const LOOKS_AT_ITS_CONNECTION: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   local _, cipher = con:query_row("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
   local _, compression = con:query_row("SHOW SESSION STATUS LIKE 'Compression'")
   print("encrypted", cipher ~= "", "compressed", compression)
end
"#;

#[test]
fn connections_are_encrypted_and_compressed_where_that_is_asked_for() {
    let place = Place::new();
    let certificates = Certificates::make(place.path());
    let [cert, key] = certificates.server.each_ref().map(|path| path.display().to_string());
    let server = Server::start_with(&[&format!("--ssl-cert={cert}"), &format!("--ssl-key={key}")]);
    let account = "CREATE USER guarded@'127.0.0.1' IDENTIFIED VIA mysql_native_password USING PASSWORD('sesame') REQUIRE SSL";
    server.own.sql(account);
    server.own.sql("GRANT ALL ON sbtest.* TO guarded@'127.0.0.1'");
    let script = place.path().join("look.lua");
    std::fs::write(&script, LOOKS_AT_ITS_CONNECTION).unwrap();
    let port = format!("--mysql-port={}", server.own.port);
    let common = [
        "sysbench",
        "--mysql-host=127.0.0.1",
        &port,
        "--mysql-user=guarded",
        "--mysql-password=sesame",
        "--events=4",
        "--time=0",
        "--threads=2",
        script.to_str().unwrap(),
        "run",
    ];
    let with = |words: &[&str]| Ran::of(&place, &[&common[..], words].concat());
    let ca = |path: &Path| format!("--mysql-ssl-ca={}", path.display());
    with(&[]).expect(1, &["FATAL: unable to connect", "FATAL: error 1045: Access denied for user 'guarded'"]);
    let ran = with(&["--mysql-ssl", "--verbosity=4"]);
    ran.expect(0, &["encrypted\ttrue\tcompressed\tOFF", "but the server was not verified"]);
    let ran = with(&["--mysql-ssl", "--verbosity=4", &ca(&certificates.authority)]);
    ran.expect(0, &["encrypted\ttrue\tcompressed\tOFF"]);
    assert!(!ran.err.contains("but the server was not verified"), "{}", ran.err);
    with(&["--mysql-ssl", &ca(&certificates.stranger)]).expect(1, &["FATAL: ", "can't use TLS"]);
    for engine in ["threads", "epoll", "io-uring"] {
        let engine = format!("--engine={engine}");
        let both = ["--mysql-ssl", &ca(&certificates.authority), "--mysql-compression", &engine];
        with(&both).expect(0, &["encrypted\ttrue\tcompressed\tON"]);
    }
}

/// Certificates of a test's own.
struct Certificates {
    /// Of the authority that signed the server's.
    authority: PathBuf,
    /// Of one that did not.
    stranger: PathBuf,
    /// Certificate and key.
    server: [PathBuf; 2],
}

impl Certificates {
    fn make(folder: &Path) -> Certificates {
        let path = |name: &str| folder.join(name);
        let names = path("names");
        std::fs::write(&names, "subjectAltName=IP:127.0.0.1\n").unwrap();
        for authority in ["authority", "stranger"] {
            let (key, cert) = (path(&format!("{authority}.key")), path(&format!("{authority}.pem")));
            let subject = format!("/CN={authority}");
            openssl(
                &["req", "-x509", "-nodes", "-days", "2", "-subj", &subject],
                &[("-keyout", &key), ("-out", &cert)],
            );
        }
        let (key, request, cert) = (path("server.key"), path("server.csr"), path("server.pem"));
        openssl(&["req", "-nodes", "-subj", "/CN=server"], &[("-keyout", &key), ("-out", &request)]);
        let signed = [
            ("-in", request.as_path()),
            ("-CA", &path("authority.pem")),
            ("-CAkey", &path("authority.key")),
            ("-extfile", &names),
            ("-out", &cert),
        ];
        openssl(&["x509", "-req", "-CAcreateserial", "-days", "2"], &signed);
        Certificates { authority: path("authority.pem"), stranger: path("stranger.pem"), server: [cert, key] }
    }
}

fn openssl(words: &[&str], files: &[(&str, &Path)]) {
    let mut command = Command::new("openssl");
    command.args(words);
    if words[0] == "req" {
        command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    }
    for (option, file) in files {
        command.arg(option).arg(file);
    }
    let output = command.output().expect("openssl is needed: apt-get install openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
