//! Series over long windows, as far as they can be from roll-ups: envelopes and means.

use whyso_series::{
    Envelope, Rollup, envelope, envelope_of_rollups, merge_rollups, rates, roll_up, roll_up_rates,
};

use super::Recording;
use crate::data::{Kind, SeriesId};
use crate::error::{Error, Result};
use crate::layout;
use crate::run::Window;

/// Roll-ups serve an envelope when at least this many fall into a bucket. What lies at an edge is then at most an eighth of a bucket off.
const ROLLUPS_A_BUCKET_MIN: i64 = 8;

impl Recording {
    /// Envelope of a gauge's readings, or of a counter's rates per second, over `[begin_ns, end_ns)` of the window. Where buckets are long
    /// enough it comes from roll-ups. The extremes are then right to 0.1 % and to a roll-up's length in time. The quartiles are those of
    /// the roll-ups' means.
    pub fn envelope(&self, id: SeriesId, window: Window, buckets: usize) -> Result<Envelope> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        let counter = info.key.kind == Kind::Counter;
        let bucket_ns = window.end_ns.saturating_sub(window.begin_ns) / buckets.max(1) as i64;
        for (level, (_, rollup_ns)) in layout::ROLLUPS.iter().enumerate().rev() {
            if bucket_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN {
                let rollups = self.read_rollups(id, window, level, *rollup_ns, counter)?;
                return Ok(envelope_of_rollups(&rollups, window.begin_ns, window.end_ns, buckets));
            }
        }
        let mut read = self.read_samples(&[id], window, counter)?;
        let points = read.pop().unwrap_or_default().points();
        let points = if counter { rates(&points.t_ns, &points.value) } else { points };
        Ok(envelope(&points.t_ns, &points.value, window.begin_ns, window.end_ns, buckets))
    }

    /// Envelope of a series' values as they were recorded, a counter's too. Where buckets are long enough it comes from roll-ups: a counter's is then
    /// of the first and the last reading of each.
    ///
    /// # Errors
    /// The recording has no such series, or its files can't be read.
    pub fn envelope_of_values(&self, id: SeriesId, window: Window, buckets: usize) -> Result<Envelope> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        if info.key.kind == Kind::Gauge {
            return self.envelope(id, window, buckets);
        }
        let bucket_ns = window.end_ns.saturating_sub(window.begin_ns) / buckets.max(1) as i64;
        let (mut t_ns, mut value) = (Vec::new(), Vec::new());
        match layout::ROLLUPS.iter().rposition(|(_, rollup_ns)| bucket_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN)
        {
            Some(level) => {
                for rollup in self.read_rollups(id, window, level, layout::ROLLUPS[level].1, true)? {
                    t_ns.extend([rollup.t_ns, rollup.t_ns]);
                    value.extend([rollup.first, rollup.last]);
                }
            }
            None => {
                let points = self.samples(id, Some(window))?.points();
                (t_ns, value) = (points.t_ns, points.value);
            }
        }
        Ok(envelope(&t_ns, &value, window.begin_ns, window.end_ns, buckets))
    }

    /// Mean of a gauge, or of a counter's rates per second, in each of some equal cells of a window. `None` where the cells are too short for
    /// roll-ups. A cell without a reading is `NaN`.
    ///
    /// # Errors
    /// The recording has no such series, or its files can't be read.
    pub fn means(&self, id: SeriesId, window: Window, cells: usize) -> Result<Option<Vec<f64>>> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        let counter = info.key.kind == Kind::Counter;
        let cell_ns = window.end_ns.saturating_sub(window.begin_ns) / cells.max(1) as i64;
        let fits = |(_, rollup_ns): &(&str, i64)| cell_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN;
        let Some(level) = layout::ROLLUPS.iter().rposition(fits) else { return Ok(None) };
        let (mut total, mut count) = (vec![0.0; cells], vec![0u64; cells]);
        for rollup in self.read_rollups(id, window, level, layout::ROLLUPS[level].1, counter)? {
            let cell = rollup.t_ns.saturating_sub(window.begin_ns).div_euclid(cell_ns);
            let Some(cell) = usize::try_from(cell).ok().filter(|cell| *cell < cells) else { continue };
            total[cell] += rollup.sum;
            count[cell] += u64::from(rollup.count);
        }
        let mean = |(total, count): (&f64, &u64)| if *count == 0 { f64::NAN } else { total / *count as f64 };
        Ok(Some(total.iter().zip(&count).map(mean).collect()))
    }

    fn read_rollups(
        &self,
        id: SeriesId,
        window: Window,
        level: usize,
        rollup_ns: i64,
        counter: bool,
    ) -> Result<Vec<Rollup>> {
        let mut rollups = Vec::new();
        for part in &self.rollups[level] {
            let Some(place) = part.index().find(id.0) else { continue };
            if place.last >= window.begin_ns && place.first < window.end_ns {
                rollups.extend(part.rollups(place.rows)?.into_iter().map(|row| row.rollup));
            }
        }
        // Segments that were not sealed have samples only.
        for part in &self.samples {
            let covered =
                self.rollups[level].iter().any(|other| other.first <= part.first && part.last <= other.last);
            let (false, Some(place)) = (covered, part.index().find(id.0)) else { continue };
            let (mut t_ns, mut value) = (Vec::new(), Vec::new());
            part.values(&[place.rows], |collection, sample| {
                if let Some(reading) = self.collections.window(collection) {
                    t_ns.push(reading.end_ns);
                    value.push(sample.as_f64());
                }
            })?;
            rollups.extend(if counter {
                roll_up_rates(&t_ns, &value, None, rollup_ns)
            } else {
                roll_up(&t_ns, &value, rollup_ns)
            });
        }
        rollups.sort_by_key(|rollup| rollup.t_ns);
        Ok(merge_rollups(&rollups, rollup_ns))
    }
}
