//! Which parts of a window are read from roll-ups, and of which length.

use crate::run::Window;

/// A part of a window, and the roll-ups that it is read from: a place among their lengths; `None`: from detail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) window: Window,
    pub(crate) rollup: Option<usize>,
}

/// Cuts a window into pieces: whole buckets of the longest roll-ups within, shorter ones towards the edges, and detail at both ends.
/// `lengths_ns` ascend.
pub(crate) fn pieces(window: Window, lengths_ns: &[i64]) -> Vec<Piece> {
    let mut found = Vec::new();
    cut(window, lengths_ns, &mut found);
    found
}

fn cut(window: Window, lengths_ns: &[i64], found: &mut Vec<Piece>) {
    let Window { begin_ns, end_ns } = window;
    if begin_ns >= end_ns {
        return;
    }
    let Some((length_ns, shorter)) = lengths_ns.split_last() else {
        return found.push(Piece { window, rollup: None });
    };
    // What lies at the ends of all time holds nothing.
    let far = i64::MAX / 4;
    let first = -(-begin_ns.max(-far)).div_euclid(*length_ns) * length_ns;
    let last = end_ns.min(far).div_euclid(*length_ns) * length_ns;
    if first >= last {
        return cut(window, shorter, found);
    }
    cut(Window { begin_ns, end_ns: first }, shorter, found);
    found.push(Piece { window: Window { begin_ns: first, end_ns: last }, rollup: Some(shorter.len()) });
    cut(Window { begin_ns: last, end_ns }, shorter, found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(begin_ns: i64, end_ns: i64) -> Window {
        Window { begin_ns, end_ns }
    }

    #[test]
    fn long_roll_ups_lie_within_and_detail_at_the_ends() {
        let cut: Vec<(i64, i64, Option<usize>)> = pieces(window(7, 345), &[10, 100])
            .iter()
            .map(|piece| (piece.window.begin_ns, piece.window.end_ns, piece.rollup))
            .collect();
        let expected =
            [(7, 10, None), (10, 100, Some(0)), (100, 300, Some(1)), (300, 340, Some(0)), (340, 345, None)];
        assert_eq!(cut, expected);
    }

    proptest! {
        #[test]
        fn pieces_follow_each_other_without_a_gap(begin in -500i64..500, length in 0i64..900) {
            let cut = pieces(window(begin, begin + length), &[10, 100]);
            let mut at = begin;
            for piece in &cut {
                prop_assert_eq!(piece.window.begin_ns, at);
                prop_assert!(piece.window.end_ns > at);
                at = piece.window.end_ns;
                let length = piece.rollup.map_or(1, |place| [10, 100][place]);
                prop_assert!(piece.window.begin_ns % length == 0 && piece.window.end_ns % length == 0);
            }
            prop_assert_eq!(at, begin + length);
        }
    }

    #[test]
    fn all_of_time_is_a_window() {
        let cut = pieces(window(i64::MIN, i64::MAX), &[10, 100]);
        assert_eq!(cut.iter().filter(|piece| piece.rollup == Some(1)).count(), 1);
        assert_eq!((cut[0].window.begin_ns, cut[cut.len() - 1].window.end_ns), (i64::MIN, i64::MAX));
    }
}
