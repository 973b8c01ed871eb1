//! Keeps a recording within a bound on disk: the oldest detail goes first. Roll-ups, events, what the load did and the texts that others refer to stay.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::folder::folder_bytes;
use crate::layout::{self, Segment};
use crate::private;
use crate::write::Disk;

/// Streams of detail: their rows are readings, threads, stacks or commands. Text tables, one stream per source, are too.
const DETAIL: [&str; 8] = [
    layout::SAMPLES,
    layout::COLLECTIONS,
    layout::STATES,
    layout::STACKS,
    layout::PROGRAM_STACKS,
    layout::PROGRAM_WAITS,
    layout::WAITS,
    layout::COMMANDS,
];

/// What was removed, as the recording has it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct PruneRecord {
    /// The bound.
    bytes_max: u64,
    /// Detail is kept from this segment on.
    from_segment: u32,
}

impl PruneRecord {
    pub(crate) fn words(self) -> String {
        format!(
            "its oldest detail was removed to keep it within {} MiB: of the time before, roll-ups of 10 seconds and 2 minutes are left, and events",
            self.bytes_max >> 20
        )
    }

    pub(crate) fn of(dir: &Path) -> Option<PruneRecord> {
        serde_json::from_slice(&private::read_file(&dir.join(layout::PRUNED), layout::RUN_BYTES_MAX).ok()?)
            .ok()
    }
}

fn is_detail(segment: &Segment) -> bool {
    segment.sealed
        && (DETAIL.contains(&segment.stream.as_str()) || segment.stream.starts_with(layout::ROWS_PREFIX))
}

/// Removes detail, the oldest segments first, until the folder is within `bytes_max` or only the newest has detail left. The space that is
/// kept in reserve is not counted.
pub(crate) fn prune(disk: &Disk, bytes_max: u64) -> Result<()> {
    let reserve = fs::metadata(disk.dir.join(layout::RESERVE)).map_or(0, |metadata| metadata.len());
    loop {
        if folder_bytes(&disk.dir).saturating_sub(reserve) <= bytes_max {
            return Ok(());
        }
        let detail: Vec<Segment> = layout::live_segments(&disk.dir)?.into_iter().filter(is_detail).collect();
        let last = |segment: &Segment| segment.last;
        let (oldest, newest) = (detail.iter().map(last).min(), detail.iter().map(last).max());
        let Some(oldest) = oldest.filter(|oldest| Some(*oldest) < newest) else { return Ok(()) };
        // Written before the files go: a reader between the two finds more than the record promises, never less.
        let prune_record = PruneRecord { bytes_max, from_segment: oldest + 1 };
        let json = serde_json::to_vec(&prune_record).map_err(|cause| Error::io(&disk.dir, cause.into()))?;
        disk.put(layout::PRUNED, &json)?;
        // Samples first: without their collections they would have no time.
        let mut gone: Vec<&Segment> = detail.iter().filter(|segment| segment.last <= oldest).collect();
        gone.sort_by_key(|segment| segment.stream == layout::COLLECTIONS);
        gone.iter().try_for_each(|segment| disk.remove(&segment.path))?;
    }
}
