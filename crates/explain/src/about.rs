//! Which level the cause is asked about: where throughput stopped growing.

use crate::level::Level;
use crate::regime::Shape;

/// Position of the level of this many users; without a number, the first above the best one, or the best one where none is.
/// `None` where nothing was measured (there).
pub(crate) fn position(levels: &[Level], shape: Option<&Shape>, users: Option<u32>) -> Option<usize> {
    let mut measured: Vec<usize> = (0..levels.len()).filter(|&at| levels[at].transactions > 0).collect();
    // A level of the sweep comes before its repetition.
    measured.sort_by_key(|&at| (levels[at].users, levels[at].repeat));
    if let Some(users) = users {
        return measured.into_iter().find(|&at| levels[at].users == users);
    }
    measured.retain(|&at| !levels[at].repeat);
    let Some(shape) = shape else {
        return measured.last().copied();
    };
    let best = shape.best_point();
    let above = measured.into_iter().find(|&at| levels[at].users > best.users);
    above.or_else(|| best.positions.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LevelInput, Machine};

    fn about(per_s: &[(u32, u64)], users: Option<u32>) -> Option<u32> {
        let inputs: Vec<LevelInput> = per_s
            .iter()
            .map(|&(users, per_s)| LevelInput {
                users,
                end_ns: 10_000_000_000,
                transactions: per_s * 10,
                latency_mean_ms: 1.0,
                bins_100ms: vec![(per_s / 10) as u32; 100],
                ..LevelInput::default()
            })
            .collect();
        let levels: Vec<Level> =
            inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
        let shape = Shape::new(&levels);
        position(&levels, shape.as_ref(), users).map(|at| levels[at].users)
    }

    #[test]
    fn the_cause_is_asked_where_throughput_stopped_growing() {
        assert_eq!(about(&[(1, 100), (8, 700), (64, 600)], None), Some(64));
        assert_eq!(about(&[(1, 100), (8, 700), (32, 650), (64, 600)], None), Some(32));
        assert_eq!(about(&[(1, 100), (2, 200), (4, 400)], None), Some(4));
        assert_eq!(about(&[(1, 100), (8, 700), (64, 600)], Some(1)), Some(1));
        assert_eq!(about(&[(1, 100)], Some(3)), None);
        assert_eq!(about(&[], None), None);
    }
}
