//! The recordings that are open. A recording that has changed is opened again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use whyso_query::ForReport;
use whyso_record::data::{SeriesId, SeriesKey};
use whyso_record::run::Window;
use whyso_record::{Recording, stamp};
use whyso_report::Column;
use whyso_report::payload::{self, PageHead, ProfilePart, ServedSeries};

use crate::error::{Answer, Refusal};

/// Recordings that are open at one time: those of a comparison, and a few more.
const OPEN_MAX: usize = 6;
/// Shortest time between two checks whether a recording has changed.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// Shortest time between two explanations of a recording that is still written.
const EXPLAIN_EVERY: Duration = Duration::from_secs(60);
/// Shortest time between two answers for the last minute of a recording that is still written.
const NOW_EVERY: Duration = Duration::from_secs(10);
/// The length of that minute.
const NOW_NS: i64 = 60_000_000_000;
/// A shorter window shows nothing.
const NOW_NS_MIN: i64 = 2_000_000_000;
/// First number of computed series. The numbers of recorded series are far below.
const COMPUTED_FROM: u32 = 1 << 31;
/// First number of the series of functions, which are computed with the part of the stacks.
const FUNCTIONS_FROM: u32 = 3 << 30;

/// A recording that is open, with what was computed from it.
pub(crate) struct OpenRecording {
    pub(crate) recording: Recording,
    /// The moment that the page's axes count from.
    pub(crate) origin_ns: i64,
    pub(crate) end_ns: i64,
    /// Series of what the load did.
    computed: Vec<(SeriesKey, Column)>,
    /// Series of when each function was busy.
    functions: OnceLock<Vec<(SeriesKey, Column)>>,
    outline: OnceLock<Arc<PageHead>>,
    explained: HeadCache,
    /// In the order of [`ProfilePart::ALL`].
    parts: [HeadCache; 3],
    /// The answer for the last minute, and when it was computed.
    now: Mutex<Option<(Instant, Arc<str>)>>,
}

/// A head that takes a while, and when it was computed.
type HeadCache = Mutex<Option<(Instant, Arc<PageHead>)>>;

/// Where a series comes from.
pub(crate) enum SeriesSource<'o> {
    Recorded(SeriesId, &'o SeriesKey),
    Computed(&'o SeriesKey, &'o Column),
}

impl SeriesSource<'_> {
    pub(crate) fn key(&self) -> &SeriesKey {
        match self {
            SeriesSource::Recorded(_, key) | SeriesSource::Computed(key, _) => key,
        }
    }
}

fn head_in(cache: &HeadCache, compute: impl FnOnce() -> Answer<PageHead>) -> Answer<Arc<PageHead>> {
    let mut known = lock(cache);
    if let Some((_, head)) = &*known {
        return Ok(Arc::clone(head));
    }
    let head = Arc::new(compute()?);
    *known = Some((Instant::now(), Arc::clone(&head)));
    Ok(head)
}

impl OpenRecording {
    pub(crate) fn open(dir: &Path) -> Answer<OpenRecording> {
        OpenRecording::of(Recording::open(dir)?, &[])
    }

    /// `computed`: what was computed from the recording as it was.
    fn of(recording: Recording, computed: &[(SeriesKey, Column)]) -> Answer<OpenRecording> {
        let origin_ns = match whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?) {
            0 => recording.window().map_or(0, |window| window.begin_ns),
            origin_ns => origin_ns,
        };
        let computed = payload::load_series(&recording, computed)?;
        let last_computed_ns = computed.iter().filter_map(|(_, column)| column.t_ns.last()).max();
        let last_read_ns = recording.window().map(|window| window.end_ns);
        let end_ns = last_computed_ns.copied().max(last_read_ns).unwrap_or(origin_ns).max(origin_ns);
        Ok(OpenRecording {
            recording,
            origin_ns,
            end_ns,
            computed,
            functions: OnceLock::new(),
            outline: OnceLock::new(),
            explained: Mutex::default(),
            parts: Default::default(),
            now: Mutex::default(),
        })
    }

    /// Returns every series with samples, and its number.
    pub(crate) fn series(&self) -> Vec<ServedSeries> {
        let functions = self.functions.get().into_iter().flatten().zip(FUNCTIONS_FROM..);
        let computed = self.computed.iter().zip(COMPUTED_FROM..).chain(functions);
        let computed = computed.map(|((key, _), number)| ServedSeries { number, key: key.clone() });
        let recorded = self.recording.series().iter().filter(|info| info.samples > 0);
        let recorded = recorded.map(|info| ServedSeries { number: info.id.0, key: info.key.clone() });
        computed.chain(recorded).collect()
    }

    /// Finds a series by its number.
    ///
    /// # Errors
    /// 404 if the run has no such series.
    pub(crate) fn find(&self, number: u32) -> Answer<SeriesSource<'_>> {
        // A page asks for those that it was shown. The recording may have been opened again since, such as after a note.
        if number >= FUNCTIONS_FROM && self.functions.get().is_none() {
            self.profile_part(ProfilePart::Stacks)?;
        }
        let computed = match (number.checked_sub(FUNCTIONS_FROM), number.checked_sub(COMPUTED_FROM)) {
            (Some(place), _) => Some(self.functions.get().and_then(|all| all.get(place as usize))),
            (None, Some(place)) => Some(self.computed.get(place as usize)),
            (None, None) => None,
        };
        if let Some(computed) = computed {
            let source = computed.map(|(key, column)| SeriesSource::Computed(key, column));
            return source.ok_or_else(|| Refusal::not_found(format!("this run has no series {number}")));
        }
        let info = self.recording.info(SeriesId(number));
        let info = info.ok_or_else(|| Refusal::not_found(format!("this run has no series {number}")))?;
        Ok(SeriesSource::Recorded(info.id, &info.key))
    }

    /// Returns the transactions per second, each at the end of its interval. `None`: the load was not recorded.
    pub(crate) fn transactions(&self) -> Option<&Column> {
        let is_it =
            |key: &SeriesKey| key.source == "load" && key.metric == "per_s" && key.instance == "transaction";
        self.computed.iter().find(|(key, _)| is_it(key)).map(|(_, column)| column)
    }

    /// Returns the head of the run before it is explained.
    pub(crate) fn outline(&self) -> Answer<Arc<PageHead>> {
        if let Some(outline) = self.outline.get() {
            return Ok(Arc::clone(outline));
        }
        let outline =
            Arc::new(payload::outline(&self.recording, &self.series(), self.origin_ns, self.end_ns)?);
        Ok(Arc::clone(self.outline.get_or_init(|| outline)))
    }

    /// Returns the head with what was found, and tables by level. It is computed once; other requests wait for it.
    pub(crate) fn explained(&self) -> Answer<Arc<PageHead>> {
        head_in(&self.explained, || {
            let explanation = whyso_query::explain(&self.recording)?;
            let axis = (self.origin_ns, self.end_ns);
            let head = ForReport::new(&self.recording, &[])?.lend(None, |extras| {
                payload::explained(&self.recording, &explanation, extras, &self.series(), axis)
            })?;
            Ok(head)
        })
    }

    /// Returns a part of what the server's threads did. It is computed once; other requests wait for it.
    pub(crate) fn profile_part(&self, part: ProfilePart) -> Answer<Arc<PageHead>> {
        head_in(&self.parts[part as usize], || {
            let (head, functions) =
                payload::profile_part(&self.recording, part, self.origin_ns, FUNCTIONS_FROM..)?;
            if part == ProfilePart::Stacks {
                self.functions.get_or_init(|| functions);
            }
            Ok(head)
        })
    }

    /// Returns the answer for the last minute of a recording that is being written, as JSON.
    ///
    /// # Errors
    /// 409 if it has ended, or has just begun.
    pub(crate) fn now(&self) -> Answer<Arc<str>> {
        if !self.recording.live() {
            return Err(Refusal::conflict("this run has ended: its report has the answer"));
        }
        let mut known = lock(&self.now);
        if let Some((at, json)) = &*known
            && at.elapsed() < NOW_EVERY
        {
            return Ok(Arc::clone(json));
        }
        let excerpt = whyso_query::excerpt(&self.recording, self.last_minute()?)?;
        let explanation = whyso_query::explain_excerpt(&excerpt)?;
        let json: Arc<str> = payload::now(&excerpt.run, &explanation, excerpt.window)?.into();
        *known = Some((Instant::now(), Arc::clone(&json)));
        Ok(json)
    }

    /// Returns the last minute, or what of it follows the level that ended last: levels with different users are not mixed.
    fn last_minute(&self) -> Answer<Window> {
        let there = self.recording.window().unwrap_or_default();
        let level_end_ns = self.recording.run().levels.last().map_or(i64::MIN, |level| level.window.end_ns);
        let begin_ns = (there.end_ns - NOW_NS).max(there.begin_ns).max(level_end_ns);
        if there.end_ns - begin_ns < NOW_NS_MIN {
            return Err(Refusal::conflict("too little was recorded until now: ask again in a moment"));
        }
        Ok(Window { begin_ns, end_ns: there.end_ns })
    }

    /// Returns a block of the explained head, or of a part. `None`: there is none of that number.
    pub(crate) fn block(&self, number: u32) -> Answer<Option<Vec<u8>>> {
        let (part, place) = ProfilePart::of_block(number);
        let head = match part {
            Some(part) => self.profile_part(part)?,
            None => self.explained()?,
        };
        Ok(head.blocks.get(place).cloned())
    }

    /// Takes over what was computed of an earlier state of the recording: a page asks for blocks of the heads that it got.
    fn take_computed(&self, before: &OpenRecording) {
        let before_all = [&before.explained].into_iter().chain(&before.parts);
        for (before, now) in before_all.zip([&self.explained].into_iter().chain(&self.parts)) {
            let before = lock(before).clone();
            *lock(now) = before.filter(|(at, _)| at.elapsed() < EXPLAIN_EVERY);
        }
        *lock(&self.now) = lock(&before.now).clone();
        if let Some(functions) = before.functions.get() {
            self.functions.get_or_init(|| functions.clone());
        }
    }

    /// Returns the window between two moments, in seconds on the page's axes.
    ///
    /// # Errors
    /// 400 if `from_s` is not below `to_s`, or if one of them is out of range.
    pub(crate) fn window(&self, from_s: f64, to_s: f64) -> Answer<Window> {
        const LONGEST_S: f64 = 1e9;
        let is_sound =
            from_s.is_finite() && to_s.is_finite() && from_s.abs() < LONGEST_S && to_s.abs() < LONGEST_S;
        if !is_sound || from_s >= to_s {
            return Err(Refusal::bad(
                "give from_s and to_s in seconds of the run, the first below the second",
            ));
        }
        let ns = |s: f64| self.origin_ns.saturating_add((s * 1e9).round() as i64);
        Ok(Window { begin_ns: ns(from_s), end_ns: ns(to_s) })
    }

    /// Returns the window from the first reading to the last.
    pub(crate) fn whole(&self) -> Window {
        let begin_ns = self.recording.window().map_or(self.origin_ns, |window| window.begin_ns);
        Window { begin_ns: begin_ns.min(self.origin_ns), end_ns: self.end_ns.max(begin_ns + 1) }
    }

    /// Converts a monotonic time to seconds on the page's axes.
    pub(crate) fn seconds(&self, ns: i64) -> f64 {
        (ns - self.origin_ns) as f64 / 1e9
    }
}

/// A recording that is open, and when it was last checked for changes.
struct CachedRecording {
    id: String,
    stamp: u64,
    checked_at: Instant,
    recording: Arc<OpenRecording>,
}

/// The folder of recordings.
pub(crate) struct Recordings {
    runs: PathBuf,
    /// The most recently used one comes last.
    cache: Mutex<Vec<CachedRecording>>,
}

impl Recordings {
    pub(crate) fn new(runs: PathBuf) -> Recordings {
        Recordings { runs, cache: Mutex::default() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.runs
    }

    /// Returns the folder of a run. The id is compared with the names in the folder, and never becomes part of a path.
    ///
    /// # Errors
    /// 404 if there is no such run.
    pub(crate) fn path(&self, id: &str) -> Answer<PathBuf> {
        let entries = fs::read_dir(&self.runs).into_iter().flatten().flatten();
        let mut named =
            entries.filter(|entry| entry.file_name().to_str() == Some(id) && !id.starts_with('.'));
        let found = named.next().map(|entry| entry.path()).filter(|path| path.is_dir());
        found.ok_or_else(|| Refusal::not_found("there is no such run: it may have been removed"))
    }

    /// Opens a run, or returns the recording that is open.
    ///
    /// # Errors
    /// There is no such run, or it can't be read.
    pub(crate) fn open(&self, id: &str) -> Answer<Arc<OpenRecording>> {
        let path = self.path(id)?;
        let mut before = None;
        let stamp = {
            let mut cache = lock(&self.cache);
            let mut cached = cache.iter().position(|cached| cached.id == id).map(|place| cache.remove(place));
            let is_current = cached.as_ref().is_some_and(|cached| cached.checked_at.elapsed() < CHECK_EVERY);
            let stamp = if is_current { None } else { Some(stamp(&path)) };
            if let Some(cached) = &mut cached {
                before = Some(Arc::clone(&cached.recording));
                if stamp.is_some() {
                    cached.checked_at = Instant::now();
                }
            }
            let is_fresh =
                cached.as_ref().is_some_and(|cached| stamp.is_none_or(|stamp| stamp == cached.stamp));
            // While one request opens it again, the others get it as it was.
            cache.extend(cached);
            match (is_fresh, &before) {
                (true, Some(opened)) => return Ok(Arc::clone(opened)),
                _ => stamp.unwrap_or_default(),
            }
        };
        let opened = Arc::new(match &before {
            // What was read of a live recording is not read again.
            Some(before) if before.recording.live() => {
                OpenRecording::of(before.recording.reopen()?, &before.computed)?
            }
            _ => OpenRecording::open(&path)?,
        });
        if let Some(before) = before.filter(|_| opened.recording.live()) {
            opened.take_computed(&before);
        }
        let mut cache = lock(&self.cache);
        cache.retain(|cached| cached.id != id);
        cache.push(CachedRecording {
            id: id.to_string(),
            stamp,
            checked_at: Instant::now(),
            recording: Arc::clone(&opened),
        });
        let excess = cache.len().saturating_sub(OPEN_MAX);
        cache.drain(..excess);
        Ok(opened)
    }

    /// Closes a run that is about to change.
    pub(crate) fn forget(&self, id: &str) {
        lock(&self.cache).retain(|cached| cached.id != id);
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock. No holder leaves a change half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
