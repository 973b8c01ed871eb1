//! Many names as a short text: beginnings that only chosen names have.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Rows of a setup table, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Every name that begins so; the empty one stands for all.
    pub(super) beginnings: Vec<String>,
    pub(super) names: Vec<String>,
}

impl Names {
    /// The fewest beginnings, each to a "/" or empty, that take in chosen names and no other of `all`; the rest one by one.
    pub(super) fn cover(chosen: &BTreeSet<&str>, all: &BTreeSet<&str>) -> Names {
        let mut cover = Names::default();
        let all: Vec<&str> = all.iter().copied().collect();
        cover.descend("", &all, chosen);
        cover
    }

    /// Only names, for keys without parts.
    pub(super) fn list(names: Vec<String>) -> Names {
        Names { beginnings: Vec::new(), names }
    }

    fn descend(&mut self, beginning: &str, all: &[&str], chosen: &BTreeSet<&str>) {
        if all.len() > 1 && all.iter().all(|name| chosen.contains(name)) {
            self.beginnings.push(beginning.to_string());
            return;
        }
        let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for &name in all {
            match name[beginning.len()..].find('/') {
                Some(slash) => below.entry(&name[..=beginning.len() + slash]).or_default().push(name),
                None if chosen.contains(name) => self.names.push(name.to_string()),
                None => {}
            }
        }
        for (beginning, all) in below {
            if all.iter().any(|name| chosen.contains(name)) {
                self.descend(beginning, &all, chosen);
            }
        }
    }

    /// As a condition on a column.
    pub(super) fn condition(&self, column: &str) -> String {
        if self.beginnings.iter().any(String::is_empty) {
            return "1 = 1".to_string();
        }
        let mut parts = Vec::new();
        for beginning in &self.beginnings {
            // not LIKE: "_" is a letter of these names
            parts.push(format!("LEFT({column}, {}) = {}", beginning.chars().count(), quoted(beginning)));
        }
        if !self.names.is_empty() {
            let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
            parts.push(format!("{column} IN ({})", names.join(", ")));
        }
        match &parts[..] {
            [] => "1 = 0".to_string(),
            [only] => only.clone(),
            several => format!("({})", several.join(" OR ")),
        }
    }
}

/// A text as SQL.
pub(super) fn quoted(text: &str) -> String {
    mysql_async::Value::from(text).as_sql(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expanded<'n>(names: &Names, all: &BTreeSet<&'n str>) -> BTreeSet<&'n str> {
        let is_in = |name: &&str| {
            names.names.iter().any(|listed| listed == name)
                || names.beginnings.iter().any(|beginning| name.starts_with(beginning.as_str()))
        };
        all.iter().copied().filter(|name| is_in(name)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_cover_stands_for_the_chosen_names_and_no_other(
            names in prop::collection::btree_map("[ab]{1,2}(/[ab]{0,2}){0,3}", any::<bool>(), 0..40)
        ) {
            let all: BTreeSet<&str> = names.keys().map(String::as_str).collect();
            let chosen: BTreeSet<&str> = names.iter().filter(|(_, is)| **is).map(|(name, _)| name.as_str()).collect();
            let cover = Names::cover(&chosen, &all);
            prop_assert_eq!(expanded(&cover, &all), chosen.clone());
            prop_assert!(cover.beginnings.len() + cover.names.len() <= chosen.len());
        }
    }

    #[test]
    fn a_whole_class_is_one_beginning_and_an_underscore_is_a_letter() {
        let all: BTreeSet<&str> =
            ["wait/synch/mutex/a_b", "wait/synch/rwlock/c", "wait/io/file/x", "idle"].into();
        let synch: BTreeSet<&str> = ["wait/synch/mutex/a_b", "wait/synch/rwlock/c"].into();
        assert_eq!(Names::cover(&synch, &all).condition("NAME"), "LEFT(NAME, 11) = 'wait/synch/'");
        assert_eq!(Names::cover(&all, &all).condition("NAME"), "1 = 1");
        assert_eq!(Names::cover(&BTreeSet::new(), &all).condition("NAME"), "1 = 0");
        assert_eq!(
            Names::list(vec!["4".into(), "5".into()]).condition("THREAD_ID"),
            "THREAD_ID IN ('4', '5')"
        );
    }
}
