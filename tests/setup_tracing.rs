//! `whyso setup-tracing`: who may trace afterwards, what is refused, and that it can be undone.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use common::capable::{as_nobody, become_nobody, for_nobody, program_for_nobody};
use common::{Place, may_trace, output, text};

const GROUP: u32 = 54_321;

/// A folder that only root may write to; `None` where this test is not root.
fn place_of_root() -> Option<Place> {
    // SAFETY: it has no effects.
    if unsafe { libc::geteuid() } != 0 {
        whyso_testing::not_tested("only root can grant capabilities");
        return None;
    }
    let place = Place::new();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    Some(place)
}

fn set_up(place: &Place, more: &[&str]) -> (Option<i32>, String) {
    let done = output(&mut place.whyso(&[&["setup-tracing"], more].concat()));
    (done.status.code(), text(&done.stdout) + &text(&done.stderr))
}

#[test]
fn members_of_the_group_trace_without_root_and_others_can_not_run_the_copy() {
    let Some(place) = place_of_root() else { return };
    let copy = place.path().join("whyso-traced");
    let to = copy.to_str().unwrap();
    let group = GROUP.to_string();
    let asked = ["--group", &group, "--to", to];

    let (status, steps) = set_up(&place, &[&asked[..], &["--dry-run"]].concat());
    assert_eq!(status, Some(0), "{steps}");
    for step in [
        "would copy",
        "-m 0750",
        "setcap cap_sys_ptrace,cap_perfmon,cap_bpf=ep",
        "cap_bpf         loads",
        "cap_sys_ptrace  reads",
        "usermod -a -G",
    ] {
        assert!(steps.contains(step), "{step}: {steps}");
    }
    assert!(!copy.exists());

    // Twice: a copy of its own is replaced.
    for _ in 0..2 {
        let (status, messages) = set_up(&place, &asked);
        assert_eq!(status, Some(0), "{messages}");
    }
    let about = fs::metadata(&copy).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (0, GROUP, 0o750));
    let capabilities = text(&Command::new("getcap").arg(&copy).output().unwrap().stdout);
    assert!(capabilities.trim().ends_with("cap_sys_ptrace,cap_perfmon,cap_bpf=ep"), "{capabilities}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no file is left besides the copy");

    let outsider = as_nobody(&place, &copy, &["doctor"]).spawn().unwrap_err();
    assert_eq!(outsider.kind(), std::io::ErrorKind::PermissionDenied);
    let mut member = for_nobody(&place, &copy, &["doctor"]);
    become_nobody(&mut member, &[GROUP]);
    let member = text(&output(&mut member).stdout);
    let budget = member.lines().find(|line| line.contains("time budget")).expect(&member);
    if may_trace() {
        assert!(budget.starts_with("ok"), "{budget}");
    }

    let (status, steps) = set_up(&place, &["--undo", "--to", to, "--dry-run"]);
    assert!(status == Some(0) && steps.contains("would remove the copy") && copy.exists(), "{steps}");
    let (status, messages) = set_up(&place, &["--undo", "--to", to]);
    assert!(status == Some(0) && !copy.exists() && !messages.contains("group"), "{messages}");
    let (status, messages) = set_up(&place, &["--undo", "--to", to]);
    assert!(status == Some(0) && messages.contains("nothing to undo"), "{messages}");
}

#[test]
fn a_group_that_was_created_goes_with_the_copy_and_one_that_was_there_stays() {
    let Some(place) = place_of_root() else { return };
    // These stand for the machine's own, which a test must not use.
    let programs = place.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let groups = place.path().join("groups");
    let list = groups.display();
    for (name, script) in [
        ("getent", format!("grep -E \"^$2:|:$2:\" {list} || exit 2")),
        ("groupadd", format!("echo \"$2:x:{GROUP}:\" >> {list}")),
        ("groupdel", format!("sed -i \"/^$1:/d\" {list}")),
    ] {
        let path = programs.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let copy = place.path().join("copy");
    let whyso = |more: &[&str]| {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let args = [&["setup-tracing", "--to", copy.to_str().unwrap()], more].concat();
        let done = output(place.whyso(&args).env("PATH", path));
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    fs::write(&groups, "there:x:700:\n").unwrap();
    let messages = whyso(&[]);
    assert!(messages.contains("create the group whyso"), "{messages}");
    assert_eq!(fs::metadata(&copy).unwrap().gid(), GROUP);
    let messages = whyso(&[]);
    assert!(!messages.contains("create the group"), "{messages}");
    let messages = whyso(&["--undo"]);
    assert!(messages.contains("groupdel whyso"), "{messages}");
    assert_eq!(fs::read_to_string(&groups).unwrap(), "there:x:700:\n");

    whyso(&["--group", "there"]);
    assert_eq!(fs::metadata(&copy).unwrap().gid(), 700);
    whyso(&["--undo"]);
    assert_eq!(fs::read_to_string(&groups).unwrap(), "there:x:700:\n");
}

#[test]
fn what_is_not_safe_is_refused_with_one_sentence() {
    let Some(place) = place_of_root() else { return };
    let refused = |more: &[&str], words: &str| {
        let (status, messages) = set_up(&place, more);
        assert_eq!(status, Some(2), "{messages}");
        assert!(messages.contains(words) && messages.lines().count() == 1, "{words}: {messages}");
    };
    let path = |name: &str| place.path().join(name).display().to_string();
    let open = path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    refused(&["--to", &format!("{open}/copy")], "others than root may write");
    fs::create_dir(path("open/below")).unwrap();
    refused(&["--to", &path("open/below/copy")], "others than root may write");
    refused(&["--to", "/var/tmp/whyso-copy"], "others than root may write");
    refused(&["--to", &path("nowhere/copy")], "can't be used");
    fs::write(path("mine"), "mine").unwrap();
    refused(&["--to", &path("mine")], "setup-tracing did not make it");
    refused(&["--undo", "--to", &path("mine")], "setup-tracing did not make it");
    refused(&["--group", "not a group", "--to", &path("copy")], "give a group's name");
    assert_eq!(fs::read_to_string(path("mine")).unwrap(), "mine");

    // Without root, only the steps are shown.
    let plain = program_for_nobody(&place, false).unwrap();
    let copy = path("copy");
    let args = ["setup-tracing", "--group", "54321", "--to", &copy];
    let done = output(&mut as_nobody(&place, &plain, &args));
    let messages = text(&done.stderr);
    assert!(done.status.code() == Some(2) && messages.contains("only root"), "{messages}");
    let done = output(&mut as_nobody(&place, &plain, &[&args[..], &["--dry-run"]].concat()));
    assert!(done.status.success(), "{}", text(&done.stderr));

    // On a file system where capabilities do not count.
    fs::create_dir(path("mounted")).unwrap();
    let mount = format!("mount -t tmpfs -o nosuid,mode=755 none {}", path("mounted"));
    let can_mount = Command::new("unshare").args(["--mount", "sh", "-c", &mount]).output();
    if !can_mount.is_ok_and(|done| done.status.success()) {
        return whyso_testing::not_tested("a file system can't be mounted here");
    }
    let program = env!("CARGO_BIN_EXE_whyso");
    let script =
        format!("{mount} && exec {program} setup-tracing --group 54321 --to {}", path("mounted/copy"));
    let done = output(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    let messages = text(&done.stderr);
    assert!(done.status.code() == Some(2) && messages.contains("nosuid"), "{messages}");
    assert!(!fs::exists(path("copy")).unwrap());
}
