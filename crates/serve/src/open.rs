//! Recordings that are open: a few at a time, each opened again once it has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use whyso_query::ForReport;
use whyso_record::data::{SeriesId, SeriesKey};
use whyso_record::run::Window;
use whyso_record::{Recording, profile_bytes, stamp};
use whyso_report::payload::{self, Served, ServedSeries};
use whyso_report::{Column, Source};

use crate::error::{Answer, Refused};

/// Recordings that are open at a time: those of a comparison, and a few more.
const OPEN_MAX: usize = 6;
/// A recording that is looked at more often than this is not looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What was found in a recording that goes on is not worked out again for so long.
const EXPLAIN_EVERY: Duration = Duration::from_secs(60);
/// Numbers of series that no source gave begin here; a recording's own are far below.
const MADE_FROM: u32 = 1 << 31;
/// Those of functions, which are made when the run is explained.
const FUNCTIONS_FROM: u32 = 3 << 30;
/// A recording with more of threads and stacks on disk is shown without its profile: all of them would have to be in memory at once.
const PROFILE_BYTES_MAX: u64 = 96 << 20;

/// A recording that is open, and what was made of it once.
pub(crate) struct Opened {
    pub(crate) recording: Recording,
    /// Zero of the page's axes.
    pub(crate) origin_ns: i64,
    pub(crate) end_ns: i64,
    /// Series that no source gave: what the load did.
    made: Vec<(SeriesKey, Column)>,
    /// Which functions were busy when.
    functions: OnceLock<Vec<(SeriesKey, Column)>>,
    outline: OnceLock<Arc<Served>>,
    explained: Mutex<Option<(Instant, Arc<Served>)>>,
    /// On disk.
    profile_bytes: u64,
}

/// One series, wherever it comes from.
pub(crate) enum Found<'o> {
    Recorded(SeriesId, &'o SeriesKey),
    Made(&'o SeriesKey, &'o Column),
}

impl Found<'_> {
    pub(crate) fn key(&self) -> &SeriesKey {
        match self {
            Found::Recorded(_, key) | Found::Made(key, _) => key,
        }
    }
}

impl Opened {
    pub(crate) fn open(dir: &Path) -> Answer<Opened> {
        Opened::of(Recording::open(dir)?)
    }

    fn of(recording: Recording) -> Answer<Opened> {
        let load = recording.load(None)?;
        let origin_ns = match whyso_report::origin_ns(recording.run(), &load) {
            0 => recording.window().map_or(0, |window| window.begin_ns),
            origin_ns => origin_ns,
        };
        let profile_bytes = profile_bytes(recording.dir())?;
        let made = payload::load_series(&recording, &load);
        let last_made_ns = made.iter().filter_map(|(_, column)| column.t_ns.last()).max();
        let last_read_ns = recording.window().map(|window| window.end_ns);
        let end_ns = last_made_ns.copied().max(last_read_ns).unwrap_or(origin_ns).max(origin_ns);
        Ok(Opened {
            recording,
            origin_ns,
            end_ns,
            made,
            functions: OnceLock::new(),
            outline: OnceLock::new(),
            explained: Mutex::default(),
            profile_bytes,
        })
    }

    /// Every series with samples, and its number.
    pub(crate) fn series(&self) -> Vec<ServedSeries> {
        let functions = self.functions.get().into_iter().flatten().zip(FUNCTIONS_FROM..);
        let made = self.made.iter().zip(MADE_FROM..).chain(functions);
        let made = made.map(|((key, _), number)| ServedSeries { number, key: key.clone() });
        let recorded = self.recording.series().iter().filter(|info| info.samples > 0);
        let recorded = recorded.map(|info| ServedSeries { number: info.id.0, key: info.key.clone() });
        made.chain(recorded).collect()
    }

    pub(crate) fn find(&self, number: u32) -> Answer<Found<'_>> {
        let made = match (number.checked_sub(FUNCTIONS_FROM), number.checked_sub(MADE_FROM)) {
            (Some(place), _) => Some(self.functions.get().and_then(|made| made.get(place as usize))),
            (None, Some(place)) => Some(self.made.get(place as usize)),
            (None, None) => None,
        };
        if let Some(made) = made {
            let made = made.map(|(key, column)| Found::Made(key, column));
            return made.ok_or_else(|| Refused::not_found(format!("this run has no series {number}")));
        }
        let info = self.recording.info(SeriesId(number));
        let info = info.ok_or_else(|| Refused::not_found(format!("this run has no series {number}")))?;
        Ok(Found::Recorded(info.id, &info.key))
    }

    /// Transactions a second, each at the end of its interval; `None` where the load was not recorded.
    pub(crate) fn transactions(&self) -> Option<&Column> {
        let is_it =
            |key: &SeriesKey| key.source == "load" && key.metric == "per_s" && key.instance == "transaction";
        self.made.iter().find(|(key, _)| is_it(key)).map(|(_, column)| column)
    }

    pub(crate) fn outline(&self) -> Answer<Arc<Served>> {
        if let Some(outline) = self.outline.get() {
            return Ok(Arc::clone(outline));
        }
        let made = Arc::new(payload::outline(&self.recording, &self.series(), self.origin_ns, self.end_ns)?);
        Ok(Arc::clone(self.outline.get_or_init(|| made)))
    }

    /// Everything but samples. Made once: who asks meanwhile waits for it.
    pub(crate) fn explained(&self) -> Answer<Arc<Served>> {
        let mut explained = lock(&self.explained);
        if let Some((_, explained)) = &*explained {
            return Ok(Arc::clone(explained));
        }
        let explanation = whyso_query::explain(&self.recording)?;
        let has_profile = self.profile_bytes <= PROFILE_BYTES_MAX;
        let stacks = has_profile.then(|| Source::stacks(&self.recording)).transpose()?;
        let notes = if has_profile { Vec::new() } else { vec![self.too_large()] };
        if let Some(stacks) = &stacks {
            self.functions.get_or_init(|| payload::function_series(stacks, self.origin_ns));
        }
        let served = ForReport::new(&self.recording, &[])?.lend(None, |beside| {
            let series = self.series();
            payload::explained(
                &self.recording,
                &explanation,
                beside,
                &series,
                stacks,
                notes,
                (self.origin_ns, self.end_ns),
            )
        })?;
        let served = Arc::new(served);
        *explained = Some((Instant::now(), Arc::clone(&served)));
        Ok(served)
    }

    fn too_large(&self) -> String {
        format!(
            "This recording holds {} MiB of what threads did and of their stacks, too much to be shown whole: threads, timeline and profile are left \
             out here. Compare two windows of it to see their flame graphs; `whyso functions`, `whyso threads` and `whyso timeline` show any window.",
            self.profile_bytes >> 20
        )
    }

    /// Of a recording that has gone on meanwhile: blocks that a page asks for belong to the head that it got.
    fn take_explained(&self, before: &Opened) {
        let found = lock(&before.explained).clone();
        *lock(&self.explained) = found.filter(|(at, _)| at.elapsed() < EXPLAIN_EVERY);
        if let Some(functions) = before.functions.get() {
            self.functions.get_or_init(|| functions.clone());
        }
    }

    /// From seconds on the page's axes; a window that ends before it begins makes no sense.
    pub(crate) fn window(&self, from_s: f64, to_s: f64) -> Answer<Window> {
        const LONGEST_S: f64 = 1e9;
        let is_sound =
            from_s.is_finite() && to_s.is_finite() && from_s.abs() < LONGEST_S && to_s.abs() < LONGEST_S;
        if !is_sound || from_s >= to_s {
            return Err(Refused::bad(
                "give from_s and to_s in seconds of the run, the first below the second",
            ));
        }
        let ns = |s: f64| self.origin_ns.saturating_add((s * 1e9).round() as i64);
        Ok(Window { begin_ns: ns(from_s), end_ns: ns(to_s) })
    }

    /// From its first reading to its last.
    pub(crate) fn whole(&self) -> Window {
        let begin_ns = self.recording.window().map_or(self.origin_ns, |window| window.begin_ns);
        Window { begin_ns: begin_ns.min(self.origin_ns), end_ns: self.end_ns.max(begin_ns + 1) }
    }

    pub(crate) fn seconds(&self, ns: i64) -> f64 {
        (ns - self.origin_ns) as f64 / 1e9
    }
}

struct Kept {
    id: String,
    stamp: u64,
    looked_at: Instant,
    opened: Arc<Opened>,
}

/// The folder of recordings.
pub(crate) struct Recordings {
    runs: PathBuf,
    /// The one that was asked for last comes last.
    kept: Mutex<Vec<Kept>>,
}

impl Recordings {
    pub(crate) fn new(runs: PathBuf) -> Recordings {
        Recordings { runs, kept: Mutex::default() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.runs
    }

    /// The folder of a run. What was sent is compared with the names that are there: it is never made a path.
    pub(crate) fn path(&self, id: &str) -> Answer<PathBuf> {
        let entries = fs::read_dir(&self.runs).into_iter().flatten().flatten();
        let mut named =
            entries.filter(|entry| entry.file_name().to_str() == Some(id) && !id.starts_with('.'));
        let found = named.next().map(|entry| entry.path()).filter(|path| path.is_dir());
        found.ok_or_else(|| Refused::not_found("there is no such run: it may have been removed"))
    }

    /// Opens a run, or gives it as it is open already.
    pub(crate) fn open(&self, id: &str) -> Answer<Arc<Opened>> {
        let path = self.path(id)?;
        let mut before = None;
        let stamp = {
            let mut kept = lock(&self.kept);
            let mut one = kept.iter().position(|one| one.id == id).map(|place| kept.remove(place));
            let is_looked_at = one.as_ref().is_some_and(|one| one.looked_at.elapsed() < LOOK_EVERY);
            let stamp = if is_looked_at { None } else { Some(stamp(&path)) };
            if let Some(one) = &mut one {
                before = Some(Arc::clone(&one.opened));
                if stamp.is_some() {
                    one.looked_at = Instant::now();
                }
            }
            let is_fresh = one.as_ref().is_some_and(|one| stamp.is_none_or(|stamp| stamp == one.stamp));
            // While one request opens it again, the others are given it as it was.
            kept.extend(one);
            match (is_fresh, &before) {
                (true, Some(opened)) => return Ok(Arc::clone(opened)),
                _ => stamp.unwrap_or_default(),
            }
        };
        let opened = Arc::new(match &before {
            // What was read of a recording that goes on is not read again.
            Some(before) if before.recording.live() => Opened::of(before.recording.reopen()?)?,
            _ => Opened::open(&path)?,
        });
        if let Some(before) = before.filter(|_| opened.recording.live()) {
            opened.take_explained(&before);
        }
        let mut kept = lock(&self.kept);
        kept.retain(|one| one.id != id);
        kept.push(Kept { id: id.to_string(), stamp, looked_at: Instant::now(), opened: Arc::clone(&opened) });
        let excess = kept.len().saturating_sub(OPEN_MAX);
        kept.drain(..excess);
        Ok(opened)
    }

    /// Lets go of a run that is about to change.
    pub(crate) fn forget(&self, id: &str) {
        lock(&self.kept).retain(|one| one.id != id);
    }
}

/// Nothing that holds one of these locks leaves a change half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
