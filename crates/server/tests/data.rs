//! Schemas, data sets and snapshots, against the machine's own MariaDB.

mod common;

use std::sync::Mutex;

use common::{folder, run, spec};
use mysql_async::prelude::Queryable;
use whyso_server::dataset::{Dataset, Method, Phase, ensure, ensure_by, is_loaded};
use whyso_server::schema::{Claim, claim, drop_marked};
use whyso_server::snapshot::{Provision, Store};
use whyso_server::{Dsn, Error, ThrowAway};

fn small() -> Dataset {
    Dataset { tables: 2, rows: 5_000, ..Dataset::default() }
}

async fn checksums(dsn: &Dsn) -> Vec<(String, Option<u64>)> {
    let mut connection = dsn.connect().await.unwrap();
    let mut sums: Vec<(String, Option<u64>)> =
        connection.query("CHECKSUM TABLE sbtest1, sbtest2").await.unwrap();
    connection.disconnect().await.unwrap();
    for (table, _) in &mut sums {
        *table = table.rsplit('.').next().unwrap_or_default().to_string();
    }
    sums
}

fn in_schema(server: &ThrowAway, schema: &str) -> Dsn {
    Dsn { schema: schema.to_string(), ..server.dsn() }
}

#[tokio::test]
async fn both_methods_load_the_same_and_what_is_there_is_not_loaded_again() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let (by_file, by_insert) = (in_schema(&server, "by_file"), in_schema(&server, "by_insert"));
    let reports = Mutex::new(Vec::new());
    let loaded = ensure_by(&by_file, &small(), Some(Method::LoadData), &|progress| {
        reports.lock().unwrap().push(progress)
    })
    .await
    .unwrap();
    assert_eq!((loaded.rows, loaded.method), (10_000, Some(Method::LoadData)));
    let reports = reports.into_inner().unwrap();
    assert!(
        reports
            .windows(2)
            .all(|pair| pair[0].phase != pair[1].phase || pair[0].rows_done <= pair[1].rows_done)
    );
    assert!(reports.iter().any(|progress| progress.phase == Phase::Rows && progress.rows_done == 10_000));
    assert_eq!(
        reports.last().map(|progress| (progress.phase, progress.rows_done)),
        Some((Phase::Indexes, 10_000))
    );

    ensure_by(&by_insert, &small(), Some(Method::Insert), &|_| ()).await.unwrap();
    let sums = checksums(&by_file).await;
    assert!(sums.iter().all(|(_, sum)| sum.is_some()));
    assert_eq!(sums, checksums(&by_insert).await);

    let again = ensure(&by_file, &small(), &|_| ()).await.unwrap();
    assert_eq!((again.rows, again.method), (0, None));
    // another seed is another data set, one table more is loaded alone
    let more = Dataset { tables: 3, ..small() };
    assert!(!is_loaded(&by_file, &more).await.unwrap());
    assert_eq!(ensure(&by_file, &more, &|_| ()).await.unwrap().rows, 5_000);
    assert!(is_loaded(&by_file, &more).await.unwrap());
    let other = Dataset { seed: 2, ..small() };
    assert_eq!(ensure(&by_file, &other, &|_| ()).await.unwrap().rows, 10_000);
    assert_ne!(sums, checksums(&by_file).await);

    let mut connection = by_file.connect().await.unwrap();
    let shown: Option<(String, String)> = connection.query_first("SHOW CREATE TABLE sbtest2").await.unwrap();
    let (_, shown) = shown.unwrap();
    for part in [
        "`id` int(11) NOT NULL AUTO_INCREMENT",
        "`k` int(11) NOT NULL DEFAULT 0",
        "`c` char(120) NOT NULL DEFAULT ''",
        "`pad` char(60) NOT NULL DEFAULT ''",
        "KEY `k_2` (`k`)",
        "ENGINE=InnoDB AUTO_INCREMENT=5001",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
}

#[tokio::test]
async fn the_server_decides_the_method_and_an_interrupted_load_is_done_again() {
    let parent = folder();
    let mut spec = spec(parent.path());
    spec.set.push(("local_infile".into(), "0".into()));
    let server = ThrowAway::start(spec).await.unwrap();
    let dsn = server.dsn();
    let dataset = Dataset { tables: 1, rows: 250_000, ..Dataset::default() };
    let interrupted =
        tokio::time::timeout(std::time::Duration::from_millis(300), ensure(&dsn, &dataset, &|_| ())).await;
    assert!(interrupted.is_err(), "nothing loads that fast");
    assert!(!is_loaded(&dsn, &dataset).await.unwrap());
    let loaded = ensure(&dsn, &small(), &|_| ()).await.unwrap();
    assert_eq!((loaded.rows, loaded.method), (10_000, Some(Method::Insert)));
    let mut connection = dsn.connect().await.unwrap();
    let rows: Option<u64> = connection.query_first("SELECT COUNT(*) FROM sbtest1").await.unwrap();
    assert_eq!(rows, Some(5_000));
}

#[tokio::test]
async fn only_a_schema_that_is_ours_or_empty_is_written_to() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    run(
        &server.dsn(),
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.customers (id INT)",
            "CREATE DATABASE bare",
            "CREATE DATABASE code",
            "CREATE PROCEDURE code.p() SELECT 1",
        ],
    )
    .await;
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    assert_eq!(claim(&mut connection, "new`one").await.unwrap(), Claim::Created);
    assert_eq!(claim(&mut connection, "new`one").await.unwrap(), Claim::Marked);
    assert_eq!(claim(&mut connection, "bare").await.unwrap(), Claim::Adopted);
    for foreign in ["shop", "code", "mysql"] {
        let refused = claim(&mut connection, foreign).await.unwrap_err();
        assert!(matches!(refused, Error::NotOurs(_)));
        assert!(refused.to_string().starts_with(&format!("schema '{foreign}' on ")), "{refused}");
        assert!(refused.to_string().contains("was not made by whyso and is not empty"), "{refused}");
    }
    assert!(matches!(ensure(&in_schema(&server, "shop"), &small(), &|_| ()).await, Err(Error::NotOurs(_))));

    // in a schema of ours, a table that somebody else made is not ours
    run(&server.dsn(), &["CREATE TABLE bare.sbtest1 (id INT)", "INSERT INTO bare.sbtest1 VALUES (7)"]).await;
    claim(&mut connection, "bare").await.unwrap();
    assert!(matches!(drop_marked(&mut connection, "bare", "sbtest1").await, Err(Error::NotOurs(_))));
    assert!(matches!(ensure(&in_schema(&server, "bare"), &small(), &|_| ()).await, Err(Error::NotOurs(_))));
    let id: Option<u32> = connection.query_first("SELECT id FROM bare.sbtest1").await.unwrap();
    assert_eq!(id, Some(7));
}

#[tokio::test]
async fn a_snapshot_gives_back_what_was_loaded_whatever_the_redo_log_s_size() {
    let parent = folder();
    let store = Store { folder: parent.path().join("snapshots"), max_bytes: u64::MAX };
    let (server, how) =
        ThrowAway::start_with_dataset(spec(parent.path()), &small(), &store, &|_| ()).await.unwrap();
    assert!(
        matches!(&how, Provision::Loaded { loaded, not_kept: None, .. } if loaded.rows == 10_000),
        "{how:?}"
    );
    let sums = checksums(&server.dsn()).await;
    run(&server.dsn(), &["DELETE FROM whyso.sbtest1 WHERE id < 100"]).await;
    assert_ne!(sums, checksums(&server.dsn()).await);
    server.stop().await.unwrap();
    let snapshots = store.list().unwrap();
    assert_eq!(snapshots.iter().map(|snapshot| &snapshot.dataset).collect::<Vec<_>>(), [&small()]);

    let mut with_other_redo = spec(parent.path());
    with_other_redo.set[0].1 = "48M".to_string();
    let (server, how) =
        ThrowAway::start_with_dataset(with_other_redo, &small(), &store, &|_| ()).await.unwrap();
    assert!(matches!(how, Provision::Restored { .. }), "{how:?}");
    assert_eq!(sums, checksums(&server.dsn()).await);
    assert!(is_loaded(&server.dsn(), &small()).await.unwrap());

    let mut with_other_pages = spec(parent.path());
    with_other_pages.set.push(("innodb_page_size".into(), "8K".into()));
    let (other, how) =
        ThrowAway::start_with_dataset(with_other_pages, &small(), &store, &|_| ()).await.unwrap();
    assert!(matches!(how, Provision::Loaded { .. }), "{how:?}");
    assert_eq!(sums, checksums(&other.dsn()).await);
    assert_eq!(store.list().unwrap().len(), 2);
}
