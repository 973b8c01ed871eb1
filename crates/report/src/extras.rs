//! What a report takes in addition to a recording and its findings.

use whyso_remedy::Proofs;

use crate::locks::LevelLocks;
use crate::pfs::RunPfs;
use crate::profile::ReadSource;
use crate::source::Source;
use crate::statements::RunStatements;

/// What only the reader of a recording can add up or find. Each part is optional.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Another run, whose stacks the page's flame graphs can be compared with.
    pub against: Option<&'a dyn Source>,
    /// For the text around lines that have time.
    pub source_text: Option<ReadSource<'a>>,
    /// What clients asked of the server, level by level.
    pub statements: Option<&'a RunStatements>,
    /// What connections waited for, level by level.
    pub locks: &'a [LevelLocks<'a>],
    /// What the Performance Schema counted, level by level.
    pub pfs: Option<&'a RunPfs>,
    /// What experiments showed of the suspects.
    pub proofs: Option<&'a Proofs>,
}
