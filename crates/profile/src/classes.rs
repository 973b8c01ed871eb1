//! What a thread waited for, by the functions on its stack.

use std::collections::BTreeMap;

use crate::function::FunctionName;
use crate::profile::Profile;

/// The rules that are always there.
const BUILT_IN: &str = include_str!("classes.txt");
/// The class of rules that name functions which wait without leaving their CPU.
const SPIN: &str = "spin";
const CPU: &str = "cpu";
/// Reads, writes and syncs of files: the states that begin with `file_`.
const IO: &str = "io";
const ANY: &str = "*";
/// Between a function and one that is further out.
const WITHIN: &str = " <";

/// One line of a file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    class: String,
    metric: String,
    pattern: Pattern,
    /// A function that has to be further out on the stack.
    outer: Option<Pattern>,
}

/// A name in which `*` stands for any text, taken apart once: very many names are compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    begin: String,
    /// What lies between stars, and what follows the last; `None` without a star.
    rest: Option<(Vec<String>, String)>,
}

impl Pattern {
    fn new(pattern: &str) -> Pattern {
        let Some((begin, rest)) = pattern.split_once('*') else {
            return Pattern { begin: pattern.to_string(), rest: None };
        };
        let mut parts: Vec<String> = rest.split('*').map(str::to_string).collect();
        let end = parts.pop().unwrap_or_default();
        Pattern { begin: begin.to_string(), rest: Some((parts, end)) }
    }

    /// Whether it is all of a name.
    fn matches(&self, name: &str) -> bool {
        let Some((parts, end)) = &self.rest else { return self.begin == name };
        let Some(mut left) = name.strip_prefix(self.begin.as_str()) else { return false };
        for part in parts {
            match left.find(part.as_str()) {
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        left.ends_with(end.as_str())
    }
}

/// Rules that give a stack its class, in the order in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A line of a file of rules that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}, '{text}', is no rule: give a class (letters, digits, _), a metric or *, and a function's name"
)]
pub struct RuleError {
    /// From 1.
    pub line: usize,
    pub text: String,
}

impl Rules {
    /// Returns the rules for MySQL and MariaDB.
    pub fn built_in() -> Rules {
        // A test reads it.
        Rules::parse(BUILT_IN).unwrap_or_default()
    }

    /// # Errors
    /// A line that is neither a rule, nor empty, nor begins with `#`.
    pub fn parse(text: &str) -> Result<Rules, RuleError> {
        let mut rules = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || RuleError { line: place + 1, text: line.to_string() };
            let (class, rest) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
            let (metric, pattern) = rest.trim_start().split_once(char::is_whitespace).ok_or_else(wrong)?;
            let (pattern, outer) = match pattern.split_once(WITHIN) {
                Some((inner, outer)) => (inner.trim(), Some(outer.trim())),
                None => (pattern.trim(), None),
            };
            let is_name =
                |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if !is_name(class)
                || !(is_name(metric) || metric == ANY)
                || pattern.is_empty()
                || outer == Some("")
            {
                return Err(wrong());
            }
            let [class, metric] = [class, metric].map(str::to_string);
            rules.push(Rule {
                class,
                metric,
                pattern: Pattern::new(pattern),
                outer: outer.map(Pattern::new),
            });
        }
        Ok(Rules { rules })
    }

    /// Returns these rules, followed by others. Where both name a function, these count.
    pub fn before(mut self, others: Rules) -> Rules {
        self.rules.extend(others.rules);
        self
    }

    /// Returns the class of a stack, innermost function first. On a CPU only a thread that spins waits for anything.
    pub fn class(&self, stack: &[FunctionName], metric: &str) -> Option<&str> {
        self.named(stack, metric).map(|(_, class)| class)
    }

    /// Returns the class of the innermost function that any rule of a metric names, with the place of that function.
    pub fn innermost<'a>(&'a self, stack: &[FunctionName], metric: &str) -> Option<(usize, &'a str)> {
        let names: Vec<&str> = stack.iter().map(|function| bare(&function.name)).collect();
        (0..names.len()).find_map(|place| {
            let rule = self.rules.iter().find(|rule| rule.fits(&names[place..], metric))?;
            Some((place, rule.class.as_str()))
        })
    }

    /// Returns the class of each rule.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.class.as_str())
    }

    /// The same, with the place of the function that decided.
    pub(crate) fn named(&self, stack: &[FunctionName], metric: &str) -> Option<(usize, &str)> {
        let names: Vec<&str> = stack.iter().map(|function| bare(&function.name)).collect();
        let around = if metric == CPU {
            let spins = |place: &usize| {
                self.rules.iter().any(|rule| rule.class == SPIN && rule.fits(&names[*place..], CPU))
            };
            // What a spinning function was called for, a thread would also have waited for.
            (0..names.len()).find(spins)? + 1
        } else {
            0
        };
        let of = |stack: &[&str]| {
            let mut fitting = self.rules.iter().filter(|rule| rule.class != SPIN);
            fitting.find(|rule| rule.fits(stack, if metric == CPU { "lock" } else { metric }))
        };
        let mut places = around..names.len();
        places.find_map(|place| Some((place, of(&names[place..])?.class.as_str())))
    }
}

impl Rule {
    /// Whether it names the innermost function of this stack, of which there is one at least.
    fn fits(&self, stack: &[&str], metric: &str) -> bool {
        // What is true of input and output is of each of its states.
        let is_of = self.metric == metric || self.metric == IO && metric.starts_with("file_");
        let is_within = |outer: &Pattern| stack[1..].iter().any(|name| outer.matches(name));
        (self.metric == ANY || is_of)
            && self.pattern.matches(stack[0])
            && self.outer.as_ref().is_none_or(is_within)
    }
}

/// A function's name without its parameters.
fn bare(name: &str) -> &str {
    let skip = if name.starts_with("(anonymous namespace)") { "(anonymous namespace)".len() } else { 0 };
    name[skip..].find('(').map_or(name, |at| &name[..skip + at])
}

/// A class's time, in nanoseconds by metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTime {
    /// `None`: no rule names any function of these stacks, or, on a CPU, they did not spin.
    pub class: Option<String>,
    pub ns: Vec<f64>,
}

/// Returns the profile's time by class, the one with the most in the first metric first, and what has none last.
pub fn classes(profile: &Profile, rules: &Rules) -> Vec<ClassTime> {
    let metrics = profile.metrics.len();
    let mut class_of: BTreeMap<(u32, usize), Option<&str>> = BTreeMap::new();
    let mut times: BTreeMap<Option<&str>, Vec<f64>> = BTreeMap::new();
    for (sample, stack) in profile.samples_with_stacks() {
        let class = *class_of
            .entry((sample.stack, sample.metric))
            .or_insert_with(|| rules.class(stack, &profile.metrics[sample.metric]));
        times.entry(class).or_insert_with(|| vec![0.0; metrics])[sample.metric] += sample.weight_ns;
    }
    let mut classes: Vec<ClassTime> =
        times.into_iter().map(|(class, ns)| ClassTime { class: class.map(str::to_string), ns }).collect();
    classes.sort_by(|a, b| {
        let first = |time: &ClassTime| time.ns.first().copied().unwrap_or(0.0);
        a.class
            .is_none()
            .cmp(&b.class.is_none())
            .then(first(b).total_cmp(&first(a)))
            .then(a.class.cmp(&b.class))
    });
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfileSample;
    use proptest::prelude::*;

    fn stack(path: &str) -> Vec<FunctionName> {
        let function = |name: &str| FunctionName { name: name.to_string(), module: String::new() };
        path.split(" < ").map(function).collect()
    }

    #[track_caller]
    fn check(metric: &str, path: &str, class: Option<&str>) {
        assert_eq!(Rules::built_in().class(&stack(path), metric), class, "{path}");
    }

    /// Stacks as they were seen on MariaDB 10.11, MySQL 5.5 and MySQL 9.
    #[test]
    fn what_servers_wait_for_has_its_class() {
        assert!(!Rules::parse(BUILT_IN).unwrap().rules.is_empty());
        check(
            "lock",
            "os_event_wait_low < log_write_up_to < trx_commit_complete_for_mysql",
            Some("redo_flush"),
        );
        check("lock", "inline_mysql_cond_wait < thd_async_state::wait_for_pending_ops()", Some("redo_flush"));
        check("lock", "futex_wait < net_real_write < net_flush", Some("redo_flush"));
        check("net_send", "sock_write < net_real_write < net_flush", None);
        // Of a stripped build only functions that others may call have names.
        check("lock", "futex_wait < ha_commit_trans < trans_commit_stmt", Some("redo_flush"));
        check("lock", "futex_wait < MYSQL_BIN_LOG::log_and_order < ha_commit_trans", Some("binlog"));
        check("lock", "futex_wait < MDL_context::acquire_lock < ha_commit_trans", Some("metadata_lock"));
        check("cpu", "memcpy < ha_commit_trans < trans_commit_stmt", None);
        check("lock", "os_event::wait_low(long) < lock_wait_suspend_thread(que_thr_t*)", Some("row_lock"));
        check("lock", "lock_wait(que_thr_t*) < row_search_mvcc(unsigned char*)", Some("row_lock"));
        check(
            "lock",
            "srw_lock_impl<true>::rd_lock() < lock_sys_t::rd_lock() < lock_table",
            Some("lock_system"),
        );
        check(
            "lock",
            "rw_pr_wrlock < MDL_map::find_or_insert(MDL_key const*) < open_table",
            Some("metadata_lock"),
        );
        check("lock", "inline_mysql_mutex_lock < open_table < open_tables", Some("table_cache"));
        check(
            "lock",
            "mutex_spin_wait < log_reserve_and_write_fast < mtr_commit < row_upd",
            Some("redo_write"),
        );
        check(
            "lock",
            "rw_lock_s_lock_spin < buf_page_get_gen < btr_cur_search_to_nth_level",
            Some("page_latch"),
        );
        check(
            "lock",
            "rw_lock_s_lock_spin < mtr_s_lock_func < btr_cur_search_to_nth_level",
            Some("index_latch"),
        );
        check("io", "pread64 < os_file_pread < buf_page_get_low < btr_cur_t::search_leaf", Some("page_read"));
        check(
            "io",
            "fsync < log_t::write < log_write_up_to < MYSQL_BIN_LOG::ordered_commit",
            Some("redo_flush"),
        );
        check(
            "lock",
            "pthread_cond_wait < Commit_stage_manager::enroll_for < MYSQL_BIN_LOG::commit",
            Some("binlog"),
        );
        // The same function syncs the log's files and those of tables: what called it decides.
        check(
            "io",
            "fsync < os_file_flush_func < fil_flush < log_write_up_to < trx_commit",
            Some("redo_flush"),
        );
        check("io", "fsync < os_file_flush_func < fil_flush < buf_flush_page_cleaner", Some("page_flush"));
        check(
            "lock",
            "srw_lock_impl<false>::rd_lock() < fil_space_t::s_lock() < info_low",
            Some("tablespace"),
        );
        check("lock", "futex_wait < some_plugin_function < dispatch_command", None);
        let numbers =
            "ha_innobase::innobase_lock_autoinc() < handler::update_auto_increment() < write_record";
        check("lock", &format!("lock_wait(que_thr_t*) < lock_table < {numbers}"), Some("auto_increment"));
        check("lock", "futex_wait < handler::update_auto_increment() < write_record", Some("auto_increment"));
        let margin = "log_check_margins() < log_free_check < row_upd_clust_step";
        check("lock", &format!("os_event::wait < buf_flush_wait_flushed < {margin}"), Some("checkpoint"));
        let timed = "futex_wait < inline_mysql_cond_timedwait";
        let get_lock = "MDL_wait::timed_wait < MDL_context::acquire_lock < Item_func_get_lock::val_int()";
        check("lock", &format!("{timed} < {get_lock} < mysql_execute_command"), Some("user_lock"));
        let sleep = "Interruptible_wait::wait(st_mysql_cond*) < Item_func_sleep::val_int()";
        check("lock", &format!("{timed} < {sleep} < mysql_execute_command"), Some("sleep"));
        // Those that follow in a group commit wait until the first one has written and synced for all of them.
        let follower = "wait_for_commit::wait_for_prior_commit2(THD*, bool) < THD::wait_for_prior_commit";
        check("lock", &format!("futex_wait < {follower} < ha_commit_trans"), Some("binlog"));
        let follower = "group_commit_lock::acquire(unsigned long) < log_write_up_to < ha_commit_trans";
        check("lock", &format!("futex_wait < {follower}"), Some("redo_flush"));
    }

    #[test]
    fn a_thread_on_a_cpu_waits_only_where_it_spins() {
        check("cpu", "log_write_up_to < trx_commit", None);
        check("cpu", "ut_delay < mutex_spin_wait < buf_page_get_gen < row_search", Some("page_latch"));
        check("cpu", "ut_delay < somewhere", None);
    }

    #[test]
    fn a_rule_of_io_is_one_of_each_state_of_files_and_a_rule_of_a_state_only_of_that_state() {
        let path = "fsync < os_file_flush_func < fil_flush < buf_flush_page_cleaner";
        for state in ["file_read", "file_write", "file_sync"] {
            check(state, path, Some("page_flush"));
        }
        let rules = Rules::parse("mine file_sync fil_flush\n").unwrap();
        let class = |state: &str| rules.class(&stack(path), state).map(str::to_string);
        assert_eq!(
            [class("file_sync"), class("file_write"), class("io")],
            [Some("mine".to_string()), None, None]
        );
    }

    #[test]
    fn a_users_rules_come_first() {
        let rules =
            Rules::parse("# mine\n\nmy_plugin  lock  some_plugin_*\nmine * log_write_up_to\n").unwrap();
        let rules = rules.before(Rules::built_in());
        assert_eq!(rules.class(&stack("some_plugin_function(int)"), "lock"), Some("my_plugin"));
        assert_eq!(rules.class(&stack("log_write_up_to"), "io"), Some("mine"));
        assert_eq!(rules.class(&stack("lock_wait"), "lock"), Some("row_lock"));
    }

    #[test]
    fn a_rule_may_ask_for_a_function_further_out() {
        let rules = Rules::parse("mine lock inner* < outer\nelse * inner\n").unwrap();
        let class = |path: &str| rules.class(&stack(path), "lock").map(str::to_string);
        assert_eq!(class("inner_one < between < outer < main").as_deref(), Some("mine"));
        assert_eq!(class("inner < main").as_deref(), Some("else"));
        assert_eq!(class("outer < inner").as_deref(), Some("else"), "further in");
    }

    #[test]
    fn a_line_that_is_no_rule_is_reported_with_its_number() {
        for text in [
            "row_lock * lock_wait < ",
            "row_lock",
            "row_lock *",
            "row-lock * lock_wait",
            "row_lock lo.ck lock_wait",
        ] {
            let error = Rules::parse(&format!("# first\n{text}\n")).unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (2, text.trim()));
            assert!(error.to_string().starts_with("line 2, '"));
        }
    }

    #[test]
    fn the_classes_add_up_to_the_profile() {
        let mut profile = Profile { metrics: vec!["lock".to_string()], ..Profile::default() };
        profile.stacks.insert(1, stack("lock_wait < main"));
        profile.stacks.insert(2, stack("elsewhere"));
        let sample = |stack, weight_ns| ProfileSample::one(stack, 0, weight_ns, 0.0);
        profile.samples = vec![sample(2, 90.0), sample(1, 1.0), sample(1, 2.0)];
        let times: Vec<(Option<String>, f64)> =
            classes(&profile, &Rules::built_in()).into_iter().map(|time| (time.class, time.ns[0])).collect();
        assert_eq!(times, [(Some("row_lock".to_string()), 3.0), (None, 90.0)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn any_rules_and_names_are_read_without_a_panic(text in "[a-z*<>:( \n#_é]{0,80}", name in "[a-z<>:()é ]{0,30}") {
            if let Ok(rules) = Rules::parse(&text) {
                let _ = rules.class(&[FunctionName { name: name.clone(), module: String::new() }], "lock");
            }
            prop_assert!(Pattern::new("*").matches(&name));
            prop_assert!(Pattern::new(&name).matches(&name));
        }

        #[test]
        fn a_star_stands_for_any_text(begin in "[a-c]{0,4}", middle in "[a-c]{0,4}", end in "[a-c]{0,4}") {
            let name = format!("{begin}{middle}{end}");
            let pattern = format!("{begin}*{end}");
            prop_assert!(Pattern::new(&pattern).matches(&name));
        }
    }
}
