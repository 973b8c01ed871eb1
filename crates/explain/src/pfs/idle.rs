//! Which waits are those of threads that have nothing to do.

use std::sync::LazyLock;

/// (is idle, how the name begins), in the order in which they are tried.
static RULES: LazyLock<Vec<(bool, &'static str)>> = LazyLock::new(|| {
    let lines = include_str!("idle_waits.txt").lines();
    let rules = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    rules
        .filter_map(|line| line.split_once(' '))
        .map(|(word, begin)| (word == "idle", begin.trim()))
        .collect()
});

/// Whether `event` is a wait for work rather than a wait in it.
pub(crate) fn is_idle(event: &str) -> bool {
    RULES.iter().find(|(_, begin)| event.starts_with(begin)).is_some_and(|(is_idle, _)| *is_idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_one_of_two_words() {
        let lines = include_str!("idle_waits.txt").lines().map(str::trim);
        let rules: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(rules.len(), RULES.len());
        assert!(rules.iter().all(|line| line.starts_with("idle ") || line.starts_with("work ")), "{rules:?}");
    }

    #[test]
    fn conditions_of_background_threads_are_idle_and_those_of_commits_are_not() {
        assert!(is_idle("idle"));
        assert!(is_idle("wait/synch/cond/sql/COND_manager"));
        assert!(is_idle("wait/io/socket/sql/client_connection"));
        assert!(!is_idle("wait/synch/cond/sql/MDL_context::COND_wait_status"));
        assert!(!is_idle("wait/synch/mutex/innodb/log_sys_mutex"));
        assert!(!is_idle("wait/io/file/innodb/innodb_log_file"));
    }
}
