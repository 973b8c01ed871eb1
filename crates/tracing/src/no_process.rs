//! Why a server's process is not known.

use std::collections::BTreeMap;

/// A sentence on why the process of a server with these variables was not found, and what would find it.
pub fn no_process(variables: &BTreeMap<String, String>) -> String {
    let ours = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    sentence(variables.get("hostname").map(String::as_str), ours.trim())
}

fn sentence(theirs: Option<&str>, ours: &str) -> String {
    match theirs {
        Some(theirs) if theirs == ours => {
            "its process can't be found on this machine: this user may not see it, or several servers fit; run as root, or \
             name its socket in --dsn"
                .to_string()
        }
        Some(theirs) => format!(
            "its process can't be found from here, as it runs on the host {theirs}: on another machine, or in a container (--container finds \
             one that is here)"
        ),
        None => "its process can't be found from here, as it does not say on which host it runs".to_string(),
    }
}

#[test]
fn a_lack_of_rights_is_never_called_another_machine() {
    assert!(sentence(Some("db1"), "db1").contains("may not see it"));
    assert!(sentence(Some("db2"), "db1").contains("host db2"));
    assert!(!sentence(None, "db1").contains("machine"));
}
