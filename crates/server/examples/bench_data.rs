use std::path::PathBuf;
use mysql_async::prelude::Queryable;
use whyso_server::dataset::{self, Dataset, Method};
use whyso_server::{StartSpec, ThrowAway, find};
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut spec = StartSpec::new(find(None).unwrap());
    spec.parent_dir = Some(PathBuf::from("/var/tmp"));
    spec.data_bytes = 1 << 30;
    for setting in std::env::args().skip(1) {
        let (n, v) = setting.split_once('=').unwrap();
        spec.set.push((n.into(), v.into()));
    }
    let server = ThrowAway::start(spec).await.unwrap();
    for round in 0..2 {
        for method in [Method::LoadData, Method::Insert] {
            let mut c = server.dsn().connect_without_schema().await.unwrap();
            c.query_drop("DROP DATABASE IF EXISTS whyso").await.unwrap();
            c.query_drop("DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest").await.unwrap();
            let t = std::time::Instant::now();
            let l = std::cell::Cell::new(0.0); let _ = &l;
            let idx = std::sync::Mutex::new(0.0);
            let loaded = dataset::ensure_by(&server.dsn(), &Dataset::default(), Some(method), &|p| {
                if p.phase == dataset::Phase::Indexes && p.rows_done == 0 { *idx.lock().unwrap() = t.elapsed().as_secs_f64(); }
            }).await.unwrap();
            println!("round {round} {method}: {:.2} s, {:.0} rows/s (rows phase {:.2})", loaded.seconds, loaded.rows_per_s, idx.lock().unwrap());
            c.query_drop("DROP DATABASE IF EXISTS whyso").await.unwrap();
        }
        let t = std::time::Instant::now();
        let out = std::process::Command::new("sysbench").args(["oltp_read_write", "--tables=4", "--table-size=250000", "--threads=4", "--mysql-user=root"])
            .arg(format!("--mysql-socket={}", server.dsn().socket.unwrap().display())).arg("prepare").output().unwrap();
        println!("sysbench: {:?} {:.2} s", out.status.code(), t.elapsed().as_secs_f64());
    }
}
