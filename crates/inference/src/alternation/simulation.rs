//! Windows under noise whose kind is known, in pairs of random order: what the tests of this folder are run on.

use whyso_random::noise::{Noise, ar1, bursts, heavy, periodic};

/// Seconds of a window.
const WINDOW_S: f64 = 1.0;
/// Standard deviation of a window's logarithm, without a neighbour.
pub(super) const SPREAD: f64 = 0.02;

/// Kinds of noise on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Normal,
    /// Autoregressive of order 1, with a correlation of 0.9 from one window to the next.
    Correlated,
    /// Student's t with two degrees of freedom: its variance is infinite.
    Heavy,
    /// A neighbour takes 20 % for three of every ten seconds.
    Periodic,
    /// A neighbour takes 40 % for eight seconds, about once per minute.
    Bursty,
}

pub(super) const KINDS: [Kind; 5] =
    [Kind::Normal, Kind::Correlated, Kind::Heavy, Kind::Periodic, Kind::Bursty];

/// Logarithms of a metric in windows of one second.
pub(super) fn windows(noise: &mut Noise, kind: Kind, length: usize) -> Vec<f64> {
    let depth = if kind == Kind::Periodic { 0.2 } else { 0.4 };
    let busy = match kind {
        Kind::Periodic => periodic(noise, length, WINDOW_S, 10.0, 3.0),
        Kind::Bursty => bursts(noise, length, WINDOW_S, 52.0, 8.0),
        _ => vec![0.0; length],
    };
    let base: Vec<f64> = match kind {
        Kind::Correlated => ar1(noise, length, 0.9),
        Kind::Heavy => (0..length).map(|_| heavy(noise, 2)).collect(),
        _ => (0..length).map(|_| noise.normal()).collect(),
    };
    base.iter().zip(&busy).map(|(value, share)| SPREAD * value + (1.0 - depth * share).ln()).collect()
}

/// Logarithms of variant ÷ baseline of pairs in random order, where the variant has the effect `effect`.
pub(super) fn differences(noise: &mut Noise, kind: Kind, pairs: usize, effect: f64) -> Vec<f64> {
    let windows = windows(noise, kind, 2 * pairs);
    let in_order = windows.chunks_exact(2).map(|pair| pair[1] - pair[0]);
    in_order.map(|step| effect + if noise.uniform() < 0.5 { step } else { -step }).collect()
}
