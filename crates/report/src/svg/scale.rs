//! From values to places on the chart, and round numbers for axes.

/// Linear, from `bottom` to `top` in SVG's downward y.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) bottom: f64,
    pub(super) top: f64,
}

impl Scale {
    pub(super) fn at(&self, value: f64) -> f64 {
        let length = if self.to == self.from { 1.0 } else { self.to - self.from };
        self.bottom + (value - self.from) / length * (self.top - self.bottom)
    }
}

/// Decimal logarithm; what is below the axis is drawn at its foot.
pub(super) struct LogScale {
    from: f64,
    scale: Scale,
}

impl LogScale {
    pub(super) fn new(from: f64, to: f64, bottom: f64, top: f64) -> LogScale {
        LogScale { from, scale: Scale { from: from.log10(), to: to.log10(), bottom, top } }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        self.scale.at(value.max(self.from).log10())
    }
}

/// Users, or rates, on a binary logarithm, with room for a marker at either end.
pub(super) struct LevelScale(Scale);

impl LevelScale {
    /// `levels` are above 0.
    pub(super) fn new(levels: impl Iterator<Item = f64>, left: f64, right: f64) -> LevelScale {
        let (low, high) =
            levels.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), one| (low.min(one), high.max(one)));
        LevelScale(Scale { from: low.log2() - 0.45, to: high.log2() + 0.45, bottom: left, top: right })
    }

    pub(super) fn at(&self, level: f64) -> f64 {
        self.0.at(level.log2())
    }
}

/// Round steps from 0 to at least `most`, about `count` of them.
pub(super) fn ticks(most: f64, count: usize) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0, 1.0];
    }
    let rough = most / count as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0]
        .iter()
        .map(|times| times * power)
        .find(|size| *size >= rough)
        .unwrap_or(10.0 * power);
    let steps = (most / step - 1e-9).ceil() as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// 1, 2 and 5 of every power of ten, or only the powers where those are too many.
pub(super) fn log_ticks(from: f64, to: f64) -> Vec<f64> {
    let make = |factors: &[f64]| {
        let mut found = Vec::new();
        for power in from.log10().floor() as i32..=to.log10().ceil() as i32 {
            found.extend(
                factors
                    .iter()
                    .map(|factor| factor * 10f64.powi(power))
                    .filter(|tick| *tick >= from && *tick <= to),
            );
        }
        found
    };
    let fine: Vec<f64> = make(&[1.0, 2.0, 5.0]);
    if fine.len() > 7 { make(&[1.0]) } else { fine }
}

/// Moves labels apart, keeping their order, so that none is nearer to its neighbour than `apart`.
pub(super) fn spread(wanted: &[f64], apart: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    for pair in order.windows(2) {
        placed[pair[1]] = placed[pair[1]].max(placed[pair[0]] + apart);
    }
    placed
}
