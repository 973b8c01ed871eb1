//! What the starts say: each cell at each number of users, against the baseline on the same server.

use serde::Serialize;
use whyso_explain::study::{Compared, Spread, compare, spread};

use crate::cells::{Cell, Start};
use crate::spec::Spec;

/// One cell at one number of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub users: u32,
    pub cell: Cell,
    /// Transactions a second over its starts; `None` where none was measured.
    pub spread: Option<Spread>,
    pub is_baseline: bool,
    /// Against the baseline; `None` of the baseline itself, and where they share no block.
    pub compared: Option<Compared>,
    /// The baseline's own starts differ so much that the comparison means little.
    pub baseline_unstable: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub title: String,
    pub question: String,
    pub matters_percent: f64,
    /// Starts that are done, and all of them.
    pub starts_done: usize,
    pub starts: usize,
    /// By users, then as the file has the cells.
    pub lines: Vec<Line>,
}

/// `measured`: of a start at so many users, the transactions a second.
pub fn answer(spec: &Spec, done: &[Start], measured: impl Fn(Start, u32) -> Option<f64>) -> Answer {
    let cells = spec.cells();
    let values = |cell: usize, users: u32| -> Vec<(u32, f64)> {
        let starts = done.iter().filter(|start| start.cell == cell);
        starts.filter_map(|start| Some((start.block, measured(*start, users)?))).collect()
    };
    let baseline_of =
        |cell: &Cell| cells.iter().position(|one| one.server == cell.server && one.variant == spec.baseline);
    let mut lines = Vec::new();
    let mut pairs = Vec::new();
    for &users in &spec.users {
        for (at, cell) in cells.iter().enumerate() {
            let own = values(at, users);
            let baseline = baseline_of(cell);
            let is_baseline = baseline == Some(at);
            let beside = baseline.map(|baseline| values(baseline, users)).unwrap_or_default();
            let only = |values: &[(u32, f64)]| values.iter().map(|(_, value)| *value).collect::<Vec<f64>>();
            lines.push(Line {
                users,
                cell: cell.clone(),
                spread: spread(&only(&own)),
                is_baseline,
                compared: None,
                baseline_unstable: spread(&only(&beside)).is_some_and(|spread| spread.unstable),
            });
            let of_block =
                |block: u32| beside.iter().find(|(other, _)| *other == block).map(|(_, value)| *value);
            let paired = own.iter().filter_map(|(block, value)| Some((of_block(*block)?, *value)));
            pairs.push(if is_baseline { Vec::new() } else { paired.collect() });
        }
    }
    let matters = 1.0 + spec.matters_percent / 100.0;
    // One family: the chance of a wrong finding is that of all comparisons of the study together.
    for (line, compared) in lines.iter_mut().zip(compare(&pairs, matters, spec.seed)) {
        line.compared = compared;
    }
    Answer {
        title: spec.title.clone(),
        question: spec.question.clone(),
        matters_percent: spec.matters_percent,
        starts_done: done.len(),
        starts: spec.blocks().iter().map(Vec::len).sum(),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use whyso_explain::study::Verdict;

    use super::*;

    #[test]
    fn each_variant_is_compared_within_its_server_and_its_blocks() {
        let text = "title = 't'\nquestion = 'q'\nservers = ['x', 'y']\nusers = [1, 8]\nrepeats = 4\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
        let spec = Spec::parse(text, false).unwrap();
        let done: Vec<Start> = spec.blocks().into_iter().flatten().collect();
        // The machine drifts by a factor from block to block; on y, b is a fifth slower at 8 users.
        let measured = |start: Start, users: u32| {
            let machine = 1000.0 * f64::from(start.block + 1) * f64::from(users);
            let jitter = 1.0 + 0.001 * f64::from(start.block % 2) * (start.cell as f64 - 1.5);
            let slower = if start.cell == 3 && users == 8 { 0.8 } else { 1.0 };
            Some(machine * jitter * slower)
        };
        let found = answer(&spec, &done, measured);
        assert_eq!((found.lines.len(), found.starts_done, found.starts), (8, 16, 16));
        let verdicts: Vec<Option<Verdict>> =
            found.lines.iter().map(|line| line.compared.map(|compared| compared.verdict)).collect();
        let (same, slower) = (Some(Verdict::NoDifferenceFound), Some(Verdict::Slower));
        assert_eq!(verdicts, [None, same, None, same, None, same, None, slower]);
        let effect = found.lines[7].compared.unwrap().effect;
        assert!((effect.ratio - 0.8).abs() < 0.002, "{effect:?}");
        assert!(found.lines.iter().all(|line| line.baseline_unstable), "the starts differ fourfold");
    }

    #[test]
    fn what_was_not_done_yet_is_not_compared() {
        let text = "title = 't'\nquestion = 'q'\nusers = [1]\nrepeats = 4\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
        let spec = Spec::parse(text, false).unwrap();
        let found =
            answer(&spec, &[Start { block: 0, cell: 0 }, Start { block: 1, cell: 1 }], |_, _| Some(5.0));
        assert!(found.lines.iter().all(|line| line.compared.is_none()), "they share no block");
        assert_eq!((found.starts_done, found.starts), (2, 8));
    }
}
