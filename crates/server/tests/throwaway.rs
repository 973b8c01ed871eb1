//! Throw-away servers, against the machine's own MariaDB.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{folder, spec};
use mysql_async::prelude::Queryable;
use whyso_server::{CpuSet, Error, StartSpec, ThrowAway, sweep};

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

async fn error_of(spec: StartSpec) -> Error {
    match ThrowAway::start(spec).await {
        Ok(_) => panic!("the server started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_server_starts_on_its_knobs_and_cpus_and_leaves_nothing_behind() {
    use std::os::unix::fs::PermissionsExt;
    let parent = folder();
    let mut spec = spec(parent.path());
    spec.set.push(("max-connections".into(), "77".into()));
    spec.cpus = Some(CpuSet::resolve("1 core").unwrap());
    let mut server = ThrowAway::start(spec).await.unwrap();
    let mode = std::fs::metadata(server.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let row: Option<(u32, u32, u64, String)> = connection
        .query_first("SELECT @@max_connections, @@skip_networking, @@innodb_log_file_size, @@datadir")
        .await
        .unwrap();
    let (connections, skip_networking, redo_bytes, data_dir) = row.unwrap();
    assert_eq!((connections, skip_networking, redo_bytes), (77, 1, 16 << 20));
    assert_eq!(Path::new(&data_dir), server.data_dir());
    connection.disconnect().await.unwrap();

    let (cpus, _) = server.cpus().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid().unwrap())).unwrap();
    let allowed =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_string();
    assert_eq!(allowed, cpus.list());

    assert!(server.died().is_none());
    assert!(server.stop_server().await.unwrap());
    assert!(server.died().is_none(), "it was asked to end");
    server.start_server().await.unwrap();
    let pid = server.pid().unwrap();
    assert!(server.stop().await.unwrap(), "it ended cleanly");
    assert!(is_empty(parent.path()));
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[tokio::test]
async fn a_death_is_noticed_with_the_last_lines_of_the_log() {
    let parent = folder();
    let mut server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let pid = rustix::process::Pid::from_raw(server.pid().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let death = loop {
        if let Some(death) = server.died() {
            break death;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(
        death.how.starts_with("it was killed by signal") || death.how.starts_with("it exited"),
        "{}",
        death.how
    );
    assert!(death.last_log_lines.iter().any(|line| line.contains("signal 6")), "{:?}", death.last_log_lines);
    drop(server);
    assert!(is_empty(parent.path()));
}

#[tokio::test]
async fn a_knob_that_the_server_does_not_take_is_named() {
    let parent = folder();
    let mut wrong = spec(parent.path());
    wrong.set.push(("innodb_bufer_pool_size".into(), "1G".into()));
    let error = error_of(wrong).await;
    assert!(matches!(&error, Error::UnknownKnob { name, .. } if name == "innodb_bufer_pool_size"), "{error}");

    let mut wrong = spec(parent.path());
    wrong.set.push(("max_connectio".into(), "100".into()));
    let error = error_of(wrong).await;
    assert!(matches!(&error, Error::UnknownKnob { name, .. } if name == "max_connectio"), "{error}");

    let mut wrong = spec(parent.path());
    wrong.set.push(("innodb_flush_method".into(), "sometimes".into()));
    let error = error_of(wrong).await;
    assert!(matches!(&error, Error::KnobValue { name, .. } if name == "innodb_flush_method"), "{error}");

    let mut wrong = spec(parent.path());
    wrong.set.push(("innodb_page_size".into(), "5000".into()));
    let error = error_of(wrong).await;
    assert!(error.to_string().contains("Invalid page size"), "{error}");
    assert!(is_empty(parent.path()));
}

#[tokio::test]
async fn a_user_s_defaults_file_counts_but_writes_nothing_outside() {
    let parent = folder();
    let elsewhere = folder();
    let file = elsewhere.path().join("my.cnf");
    let text = format!(
        "[mysqld]\ndatadir={0}/data\nsocket={0}/s\nlog_bin={0}/binlog\nslow_query_log=1\nslow_query_log_file={0}/slow.log\nsort_buffer_size=300K\nmax_connections=99\nserver_id=7\n",
        elsewhere.path().display()
    );
    std::fs::write(&file, text).unwrap();
    let mut spec = spec(parent.path());
    spec.defaults_file = Some(file);
    let server = ThrowAway::start(spec).await.unwrap();
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let row: Option<(u64, u64, u64, String)> = connection
        .query_first("SELECT @@sort_buffer_size, @@max_connections, @@log_bin, @@log_bin_basename")
        .await
        .unwrap();
    let (sort_buffer, connections, log_bin, binlog) = row.unwrap();
    assert_eq!((sort_buffer, connections, log_bin), (300 << 10, 99, 1));
    assert!(Path::new(&binlog).starts_with(server.data_dir()), "{binlog}");
    connection.disconnect().await.unwrap();
    drop(server);
    let names: Vec<_> =
        std::fs::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["my.cnf"]);
}

#[tokio::test]
async fn a_folder_in_memory_is_refused_unless_it_is_asked_for() {
    let parent = match tempfile::tempdir_in("/dev/shm") {
        Ok(parent) => parent,
        Err(error) => return whyso_testing::not_tested(format!("a folder in memory: /dev/shm: {error}")),
    };
    let refused = error_of(spec(parent.path())).await;
    assert!(refused.to_string().contains("fsync costs nothing"), "{refused}");
    let mut asked = spec(parent.path());
    asked.allow_in_memory = true;
    let server = ThrowAway::start(asked).await.unwrap();
    assert!(server.file_system().in_memory);
}

#[tokio::test]
async fn an_abandoned_start_leaves_nothing_behind() {
    let parent = folder();
    let started =
        tokio::time::timeout(Duration::from_millis(300), ThrowAway::start(spec(parent.path()))).await;
    assert!(started.is_err(), "no server starts that fast");
    assert!(is_empty(parent.path()));
}

#[tokio::test]
async fn a_sweep_leaves_servers_alone_whose_owner_lives() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    assert_eq!(sweep(parent.path()).unwrap(), []);
    assert!(server.folder().exists());
    assert!(server.dsn().connect_without_schema().await.is_ok());
}

#[tokio::test]
async fn a_server_is_held_to_its_memory_and_loads_a_library_first() {
    let parent = folder();
    let mut wanted = spec(parent.path());
    wanted.cpus = Some(CpuSet::resolve("1 core").unwrap());
    wanted.memory_bytes = Some(400 << 20);
    // Every C library has it, and no server asks for it.
    wanted.preload = Some("libmemusage.so".into());
    if !Path::new("/usr/lib/x86_64-linux-gnu/libmemusage.so").exists() {
        wanted.preload = Some("libutil.so.1".into());
    }
    let library = wanted.preload.clone().unwrap().display().to_string();
    let server = match ThrowAway::start(wanted).await {
        Ok(server) => server,
        // Where no cgroup can be created, this is reported.
        Err(error) => return assert!(error.to_string().contains("memory can't be bounded here"), "{error}"),
    };
    let pid = server.pid().unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps.contains(library.split(".so").next().unwrap()), "{library} is not in its maps");
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let is_memory = |line: &&str| line.contains(":memory:") || line.starts_with("0::");
    let group = own.lines().find(is_memory).unwrap().rsplit(':').next().unwrap().to_string();
    assert!(group.contains("whyso-server"), "{own}");
    let bounds = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].into_iter().flat_map(|mount| {
        ["memory.limit_in_bytes", "memory.max"].map(|file| format!("{mount}{group}/{file}"))
    });
    let found: Vec<String> = bounds.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    assert_eq!(found.first().map(|text| text.trim()), Some("419430400"), "{found:?}");
    assert!(server.stop().await.unwrap());
    assert!(is_empty(parent.path()));
    let mut wrong = spec(parent.path());
    wrong.preload = Some("libnothing.so.7".into());
    let refused = ThrowAway::start(wrong).await.err().unwrap();
    assert!(refused.to_string().contains("libnothing.so.7"), "{refused}");
}
