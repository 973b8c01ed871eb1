//! Finds the name that a mistyped one most likely meant.

/// Returns the name nearest to `typed`, where one is near enough to be worth suggesting. At most a third of its letters
/// may differ, or it begins with what was typed.
///
/// ```
/// let names = ["oltp-read-only", "oltp-read-write"];
/// assert_eq!(whyso_workload::nearest_name("oltp-readwrite", names), Some("oltp-read-write"));
/// assert_eq!(whyso_workload::nearest_name("tpcc", names), None);
/// ```
pub fn nearest_name<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('_', "-");
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let plain = name.to_lowercase().replace('_', "-");
        let mut distance = edit_distance(&typed, &plain);
        let is_abbreviation = typed.len() >= 3 && (plain.starts_with(&typed) || plain.ends_with(&typed));
        if is_abbreviation {
            distance = distance.min(1);
        }
        if distance > plain.len().max(3) / 3 {
            continue;
        }
        if best.is_none_or(|(shortest, _)| distance < shortest) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Levenshtein's distance in bytes: insertions, deletions and substitutions.
fn edit_distance(left: &str, right: &str) -> usize {
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_the_changed_letters() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn underscores_and_the_missing_prefix_are_forgiven() {
        let names = ["oltp-read-write", "oltp-point-select", "range_size"];
        assert_eq!(nearest_name("oltp_read_wirte", names), Some("oltp-read-write"));
        assert_eq!(nearest_name("point-select", names), Some("oltp-point-select"));
        assert_eq!(nearest_name("range-szie", names), Some("range_size"));
        assert_eq!(nearest_name("x", names), None);
    }
}
