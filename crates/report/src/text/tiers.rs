//! Where the time of a request went over several programs, as a table.

use whyso_explain::model::{TierLine, TierTime};
use whyso_words::{number, percent, whole};

use super::clean;
use super::layout::aligned_with_words;

/// Columns that a server behind is set in by.
const INDENT: usize = 2;

/// A table for each tier that no other one asks; empty where no requests were seen.
pub(crate) fn tiers(tiers: &[TierTime]) -> String {
    let firsts = tiers.iter().filter(|tier| !tier.lines.is_empty());
    firsts.map(table).collect::<Vec<_>>().join("\n")
}

fn table(tier: &TierTime) -> String {
    let title = clean(&tier.title());
    let count = whole(tier.requests.round() as u64);
    let mut rows = vec![["", "ms", "share"].map(str::to_string).to_vec()];
    rows.extend(tier.lines.iter().map(row));
    rows.iter_mut().for_each(|row| row.push(String::new()));
    let level = if tier.level.is_empty() { String::new() } else { format!("{}, ", tier.level) };
    format!("{title} ({level}mean of {count})\n{}", aligned_with_words(&rows, &[0]))
}

fn row(line: &TierLine) -> Vec<String> {
    let indent = " ".repeat(INDENT * line.depth as usize);
    vec![format!("{indent}{}", clean(&line.text)), number(line.ms), percent(line.share)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_behind_are_set_in() {
        let line = |depth, text: &str, ms, share| TierLine {
            depth,
            text: text.to_string(),
            ms,
            share,
            ..TierLine::default()
        };
        let of_requests = TierTime {
            name: "apache2".to_string(),
            requests: 1_200.0,
            lines: vec![line(0, "a request to apache2", 12.0, 1.0), line(2, "waiting on locks", 9.0, 0.75)],
            ..TierTime::default()
        };
        let text = tiers(&[of_requests.clone(), TierTime::default()]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "Where the time of a request to apache2 went (mean of 1,200)");
        assert_eq!(lines[2], "a request to apache2  12  100 %");
        assert_eq!(lines[3], "    waiting on locks   9   75 %");
        assert_eq!(tiers(&[]), "");
        let loaded = TierTime { page_ms: Some(13.0), ..of_requests };
        assert!(
            tiers(&[loaded])
                .starts_with("Where the time went that users of apache2 waited for (mean of 1,200)")
        );
    }
}
