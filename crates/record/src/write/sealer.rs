//! The second thread: from write-ahead files into Parquet, and from many Parquet files into few.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use whyso_series::{Rollup, roll_up, roll_up_rates};

use super::RecorderState;
use crate::compact;
use crate::data::{Kind, SeriesKey};
use crate::error::{Error, Result};
use crate::layout::{self, Segment};
use crate::parquet_file;
use crate::prune::prune;
use crate::sorted::{RollupRow, SortedWriter, by_series};
use crate::table::{self, Sample};
use crate::wal;

const HOUR_NS: i64 = 3_600_000_000_000;
/// Segments are also compacted when there are this many of them, however short.
const SEGMENTS_MAX: u32 = 64;
/// Bits of the mantissa that a roll-up of rates keeps: 1/2048 is finer than a pixel. More would be the jitter of the
/// readings' times, which does not compress.
const EXTREME_BITS: u32 = 10;
const SUM_BITS: u32 = 16;

pub(crate) enum Job {
    Seal { segment: u32, span_ns: (i64, i64), reply: Option<Sender<Result<()>>> },
    Finish { segment: u32, span_ns: (i64, i64), reply: Sender<Result<()>> },
}

struct Sealer<'a> {
    shared: &'a Arc<RecorderState>,
    /// Last reading of each counter, so that the rate over the edge of two segments is rolled up too.
    last: HashMap<u32, (i64, f64)>,
    series_sealed: usize,
    /// First segment that was not compacted, and when its first reading was taken.
    compact_from: u32,
    compact_from_ns: Option<i64>,
}

pub(crate) fn run(shared: &Arc<RecorderState>, jobs: &Receiver<Job>) {
    let mut sealer =
        Sealer { shared, last: HashMap::new(), series_sealed: 0, compact_from: 1, compact_from_ns: None };
    while let Ok(job) = jobs.recv() {
        let (segment, span_ns, finish) = match &job {
            Job::Seal { segment, span_ns, .. } => (*segment, *span_ns, false),
            Job::Finish { segment, span_ns, .. } => (*segment, *span_ns, true),
        };
        let sealed = sealer.seal(segment);
        if let Err(error) = &sealed {
            shared.disk.fail(error);
        }
        sealer.prune();
        if span_ns != (0, 0) {
            sealer.compact_from_ns.get_or_insert(span_ns.0);
        }
        sealer.note_cpu();
        if let Job::Seal { reply: Some(reply), .. } = &job {
            // The caller may have given up waiting.
            let _ = reply.send(sealed.and(sealer.healthy()));
            if sealer.compaction_is_due(segment, span_ns.1) {
                sealer.compact(segment);
            }
        } else if let Job::Finish { reply, .. } = &job {
            sealer.compact(segment);
            let _ = reply.send(sealed.and_then(|()| sealer.tidy()));
        } else if sealer.compaction_is_due(segment, span_ns.1) {
            sealer.compact(segment);
        }
        sealer.note_cpu();
        if finish {
            return;
        }
    }
}

impl Sealer<'_> {
    fn note_cpu(&self) {
        self.shared.sealer_cpu_ns.store(whyso_clock::thread_cpu_ns(), Ordering::Relaxed);
    }

    fn healthy(&self) -> Result<()> {
        self.shared.disk.failed().map_or(Ok(()), |why| Err(Error::Ended(why)))
    }

    /// Seals every stream of a segment. Write-ahead files go last: until then they, or the sealed files, hold every row once.
    fn seal(&mut self, segment: u32) -> Result<()> {
        let disk = &self.shared.disk;
        self.seal_series()?;
        let all = layout::all_segments(&disk.dir)?;
        let open: Vec<Segment> =
            all.into_iter().filter(|file| !file.sealed && file.first == segment).collect();
        let mut end_ns = HashMap::new();
        if let Some(collections) = open.iter().find(|file| file.stream == layout::COLLECTIONS) {
            let batches = wal::read(&collections.path)?.batches;
            for batch in &batches {
                for collection in table::collections_of(batch).unwrap_or_default() {
                    end_ns.insert(collection.id, collection.end_ns);
                }
            }
        }
        for file in &open {
            if file.stream == layout::SAMPLES {
                self.seal_samples(file, &end_ns)?;
            } else {
                let batches = wal::read(&file.path)?.batches;
                if let Some(bytes) = compact::plain_file(&file.path, &batches)? {
                    disk.put(&layout::sealed_name(&file.stream, segment, segment), &bytes)?;
                }
            }
        }
        open.iter().try_for_each(|file| disk.remove(&file.path))
    }

    fn seal_series(&mut self) -> Result<()> {
        let keys: Vec<(u32, SeriesKey)> = (0..).zip(self.shared.series().keys.iter().cloned()).collect();
        if keys.len() > self.series_sealed {
            let batch = table::series_batch(&keys)?;
            let properties = parquet_file::properties(&batch.schema(), &[]).build();
            self.shared.disk.put(layout::SERIES, &parquet_file::encode(&[batch], properties)?)?;
            self.series_sealed = keys.len();
        }
        Ok(())
    }

    /// Roll-ups first: a reader makes those that are missing from the samples, never the other way round.
    fn seal_samples(&mut self, file: &Segment, end_ns: &HashMap<i64, i64>) -> Result<()> {
        let mut samples: Vec<Sample> = Vec::new();
        for batch in wal::read(&file.path)?.batches {
            samples.extend(table::samples_of(&batch).unwrap_or_default());
        }
        samples.retain(|sample| end_ns.contains_key(&sample.collection));
        let kinds: Vec<Kind> = self.shared.series().keys.iter().map(|key| key.kind).collect();
        let mut writer = SortedWriter::new();
        let mut rollup_writers = layout::ROLLUPS.map(|_| SortedWriter::new());
        let last = &mut self.last;
        by_series(&mut samples, |rows: &[Sample]| {
            let series = rows[0].series;
            let t_ns: Vec<i64> = rows.iter().map(|row| end_ns[&row.collection]).collect();
            let value: Vec<f64> = rows.iter().map(|row| row.value.as_f64()).collect();
            let counter = kinds.get(series as usize) == Some(&Kind::Counter);
            let before = last.get(&series).copied().filter(|_| counter);
            for ((_, bucket_ns), writer) in layout::ROLLUPS.iter().zip(&mut rollup_writers) {
                let rolled = if counter {
                    roll_up_rates(&t_ns, &value, before, *bucket_ns)
                } else {
                    roll_up(&t_ns, &value, *bucket_ns)
                };
                let row = |rollup: Rollup| RollupRow {
                    series,
                    rollup: if counter { rounded(rollup) } else { rollup },
                };
                writer.push(&rolled.into_iter().map(row).collect::<Vec<_>>())?;
            }
            let newest = t_ns.iter().zip(&value).rev().find(|(_, value)| value.is_finite());
            if let (true, Some((t_ns, value))) = (counter, newest) {
                last.insert(series, (*t_ns, *value));
            }
            writer.push(rows)
        })?;
        let disk = &self.shared.disk;
        for ((stream, _), writer) in layout::ROLLUPS.iter().zip(rollup_writers) {
            if let Some(bytes) = writer.finish()? {
                disk.put(&layout::sealed_name(stream, file.first, file.last), &bytes)?;
            }
        }
        if let Some(bytes) = writer.finish()? {
            disk.put(&layout::sealed_name(layout::SAMPLES, file.first, file.last), &bytes)?;
        }
        Ok(())
    }

    fn compaction_is_due(&self, segment: u32, last_ns: i64) -> bool {
        let many = segment + 1 - self.compact_from >= SEGMENTS_MAX;
        let long = self.compact_from_ns.is_some_and(|from_ns| last_ns - from_ns >= HOUR_NS);
        many || long
    }

    /// Compacts what was sealed since the last time. Should it fail, the parts stay, and are as good.
    fn compact(&mut self, segment: u32) {
        let compacted = compact::compact(&self.shared.disk, self.compact_from, segment);
        if let Err(error) = compacted {
            self.shared.disk.fail(&error);
        }
        self.compact_from = segment + 1;
        self.compact_from_ns = None;
    }

    /// Should it fail, the recording is larger than it may be, and whole.
    fn prune(&self) {
        let Some(bytes_max) = self.shared.bytes_max else { return };
        if let Err(error) = prune(&self.shared.disk, bytes_max) {
            self.shared.disk.fail(&error);
        }
    }

    /// Removes everything except the recording: sealed files hold all that was in the others.
    fn tidy(&self) -> Result<()> {
        let disk = &self.shared.disk;
        disk.free_reserve();
        disk.remove(&disk.dir.join(layout::SERIES_WAL))?;
        disk.unlock()
    }
}

fn rounded(rollup: Rollup) -> Rollup {
    Rollup {
        min: to_bits(rollup.min, EXTREME_BITS),
        max: to_bits(rollup.max, EXTREME_BITS),
        sum: to_bits(rollup.sum, SUM_BITS),
        ..rollup
    }
}

/// The nearest number with `bits` bits of mantissa.
fn to_bits(value: f64, bits: u32) -> f64 {
    if !value.is_finite() {
        return value;
    }
    let dropped = 52 - bits;
    let half = 1u64 << (dropped - 1);
    let nearest = f64::from_bits((value.to_bits() + half) >> dropped << dropped);
    if nearest.is_finite() { nearest } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounding_stays_near(value in prop::num::f64::NORMAL) {
            let near = to_bits(value, EXTREME_BITS);
            prop_assert!((near - value).abs() <= value.abs() / 2048.0 || near == value);
            prop_assert_eq!(to_bits(near, EXTREME_BITS), near);
        }
    }

    #[test]
    fn small_whole_numbers_stay_whole() {
        for value in 0..=2048 {
            assert_eq!(to_bits(f64::from(value), EXTREME_BITS), f64::from(value));
        }
    }
}
