//! Settings of a server that are changed and put back while the file system fails at any call. The journal lists what
//! is still to be put back.

mod fake_server;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use fake_server::{SETTING, Server, connect};
use whyso_server::knobs::{Undo, pending_undo_in};
use whyso_testing::faults::{Fault, Faults, spread};

const CHILD_DIR: &str = "WHYSO_SERVER_FAULTS_CHILD";
const CHILD_SOCKET: &str = "WHYSO_SERVER_FAULTS_SOCKET";
const FIRST: u64 = 151;

async fn change_and_undo(folder: &Path, socket: &Path) -> whyso_server::Result<()> {
    let mut connection = connect(socket).await;
    let mut undo = Undo::open_in(folder, &mut connection).await?;
    let mut changed = Ok(());
    for value in ["200", "300"] {
        changed = undo.set_global(&mut connection, SETTING, value).await.map(drop);
        if changed.is_err() {
            break;
        }
    }
    undo.undo_all(&mut connection).await?;
    changed
}

#[tokio::test]
async fn the_child_changes_settings() {
    let (Ok(dir), Ok(socket)) = (std::env::var(CHILD_DIR), std::env::var(CHILD_SOCKET)) else { return };
    if let Err(error) = change_and_undo(Path::new(&dir), Path::new(&socket)).await {
        println!("error: {error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

fn run_child(faults: &Faults, server: &Server, folder: &Path, fault: Option<(Fault, usize)>) -> Output {
    server.state().value = FIRST;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["the_child_changes_settings", "--exact", "--nocapture"]);
    child.env(CHILD_DIR, folder.join("undo")).env(CHILD_SOCKET, server.socket());
    faults.inject(&mut child, folder, fault);
    child.stdin(Stdio::null()).output().unwrap()
}

async fn check(server: &Server, folder: &Path, output: &Output, what: &str) {
    let output_text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output_text.contains("panicked") && output.status.code() != Some(101), "{what}\n{output_text}");
    let is_back = server.state().value == FIRST;
    assert!(is_back || !output.status.success(), "{what}\n{output_text}");
    // The next run puts back what is left, and works.
    let journals = folder.join("undo");
    let mut connection = server.connect().await;
    for mut pending in pending_undo_in(&journals, &mut connection).await.unwrap() {
        pending.undo_all(&mut connection).await.unwrap();
    }
    assert_eq!(server.state().value, FIRST, "{what}\n{output_text}");
    change_and_undo(&journals, &server.socket()).await.unwrap();
    let left = std::fs::read_dir(&journals).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name != "all.lock").collect();
    assert!(left.is_empty(), "{left:?}: {what}\n{output_text}");
}

#[tokio::test]
async fn settings_are_put_back_after_a_fault_at_every_call() {
    let Some(faults) = Faults::compile() else { return };
    let server = Server::start();
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let make = |name: String| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let counted = make("counted".to_string());
    let output = run_child(&faults, &server, &counted, None);
    let calls = faults.calls();
    assert!(output.status.success() && calls.len() > 20, "{} calls, {output:?}", calls.len());
    check(&server, &counted, &output, "without a fault").await;
    let mut cases = 0;
    for fault in Fault::ALL {
        for at in spread(calls.len(), usize::MAX).into_iter().filter(|at| fault.matters_at(&calls[at - 1])) {
            let folder = make(format!("{fault:?}-{at}"));
            let output = run_child(&faults, &server, &folder, Some((fault, at)));
            check(&server, &folder, &output, &format!("{fault:?} at call {at}, {:?}", calls[at - 1])).await;
            cases += 1;
        }
    }
    println!("{cases} cases of {} calls", calls.len());
}
