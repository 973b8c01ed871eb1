//! Requests added up by kind.

use std::collections::HashMap;

use hdrhistogram::Histogram;

use crate::kind::{KindBounds, KindTree};
use crate::request::{ConnectionState, Request};

/// The name of all kinds for which there is no room.
const OTHER: &str = "other";
/// Methods that name a kind; others are one.
const METHODS: [&str; 14] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "PROPFIND", "REPORT",
    "MKCOL", "COPY", "MOVE",
];
/// Digits of a duration that quantiles keep: they are at most 1 % too high.
const SIGNIFICANT_DIGITS: u8 = 2;
const NS_PER_US: u64 = 1_000;

/// How much a tally keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyBounds {
    /// Kinds, from 2: the last one is `other`.
    pub kinds_max: usize,
    pub tree: KindBounds,
}

impl Default for TallyBounds {
    fn default() -> TallyBounds {
        TallyBounds { kinds_max: 256, tree: KindBounds::default() }
    }
}

/// Sums over requests.
#[derive(Clone, Debug)]
pub struct Sums {
    pub requests: u64,
    /// Answers with a status from 400 to 499.
    pub errors_4xx: u64,
    /// Answers with a status from 500 to 599.
    pub errors_5xx: u64,
    /// Connections that ended before the answer was complete.
    pub aborted: u64,
    pub bytes: u64,
    /// Requests that have a duration.
    pub timed: u64,
    pub duration_ns: u64,
    pub duration_ns_max: u64,
    /// Time in which servers behind this one answered.
    pub upstream_ns: u64,
    /// Requests that such servers answered.
    pub upstream_requests: u64,
    /// Durations in microseconds.
    durations_us: Histogram<u32>,
}

impl Default for Sums {
    fn default() -> Sums {
        let empty = Histogram::new(SIGNIFICANT_DIGITS);
        let mut durations_us = empty.expect("two digits are within the histogram's bounds");
        // A value that lies outside makes it grow.
        durations_us.auto(true);
        Sums {
            requests: 0,
            errors_4xx: 0,
            errors_5xx: 0,
            aborted: 0,
            bytes: 0,
            timed: 0,
            duration_ns: 0,
            duration_ns_max: 0,
            upstream_ns: 0,
            upstream_requests: 0,
            durations_us,
        }
    }
}

impl Sums {
    pub fn add(&mut self, request: &Request) {
        self.requests += 1;
        match request.status {
            Some(400..=499) => self.errors_4xx += 1,
            Some(500..=599) => self.errors_5xx += 1,
            _ => {}
        }
        self.aborted += u64::from(request.connection == Some(ConnectionState::Aborted));
        self.bytes = self.bytes.saturating_add(request.bytes.unwrap_or(0));
        if let Some(duration_ns) = request.duration_ns {
            self.timed += 1;
            self.duration_ns = self.duration_ns.saturating_add(duration_ns);
            self.duration_ns_max = self.duration_ns_max.max(duration_ns);
            // It grows, so that no value lies outside.
            let _ = self.durations_us.record(duration_ns.div_ceil(NS_PER_US));
        }
        if let Some(upstream_ns) = request.upstream_ns {
            self.upstream_requests += 1;
            self.upstream_ns = self.upstream_ns.saturating_add(upstream_ns);
        }
    }

    pub fn join(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.errors_4xx += other.errors_4xx;
        self.errors_5xx += other.errors_5xx;
        self.aborted += other.aborted;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.timed += other.timed;
        self.duration_ns = self.duration_ns.saturating_add(other.duration_ns);
        self.duration_ns_max = self.duration_ns_max.max(other.duration_ns_max);
        self.upstream_ns = self.upstream_ns.saturating_add(other.upstream_ns);
        self.upstream_requests += other.upstream_requests;
        // Both grow where a value lies outside, so that nothing is lost.
        let _ = self.durations_us.add(&other.durations_us);
    }

    /// Returns how many requests took how long, in microseconds: at most 1 % too high. The shortest first.
    pub fn durations_us(&self) -> impl Iterator<Item = (u64, u64)> {
        self.durations_us
            .iter_recorded()
            .map(|each| (each.value_iterated_to(), u64::from(each.count_at_value())))
    }

    /// Returns the mean duration in nanoseconds. `None`: no request has a duration.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.duration_ns.checked_div(self.timed)
    }

    /// Returns the duration in nanoseconds that this share of the requests, from 0 to 1, does not exceed. `None`: no request has one.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let value_us = self.durations_us.value_at_quantile(share);
        (self.timed > 0).then(|| value_us.saturating_mul(NS_PER_US).min(self.duration_ns_max))
    }
}

/// A kind and its sums.
#[derive(Clone, Debug)]
pub struct TallyLine {
    /// Method and pattern: `GET /items/{}`.
    pub name: String,
    pub sums: Sums,
}

/// Requests added up by kind, or by another name of the caller's.
#[derive(Clone, Debug)]
pub struct Tally {
    tree: KindTree,
    places: HashMap<String, usize>,
    lines: Vec<TallyLine>,
    bounds: TallyBounds,
}

impl Tally {
    #[must_use]
    pub fn new(bounds: TallyBounds) -> Tally {
        Tally { tree: KindTree::new(bounds.tree), places: HashMap::new(), lines: Vec::new(), bounds }
    }

    /// Adds a request to its kind. Returns the kind's place, which stays the same.
    pub fn add(&mut self, request: &Request) -> usize {
        let name = self.name_of(request);
        self.add_named(&name, request)
    }

    /// Adds a request to a line with a name of the caller's.
    pub fn add_named(&mut self, name: &str, request: &Request) -> usize {
        let place = self.place_of(name);
        self.lines[place].sums.add(request);
        place
    }

    /// Returns the line at a place. Its name can be narrower than what [`lines`](Tally::lines) has.
    #[must_use]
    pub fn line(&self, place: usize) -> Option<&TallyLine> {
        self.lines.get(place)
    }

    /// Returns the name of the kind at a place, as all paths together show it.
    #[must_use]
    pub fn name_at(&self, place: usize) -> Option<String> {
        self.lines.get(place).map(|line| self.current_name(&line.name))
    }

    /// Returns the number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.lines.len()
    }

    /// Returns every kind as all paths together show them: by time, then by requests, the highest first. `other` is the last one.
    #[must_use]
    pub fn lines(&self) -> Vec<TallyLine> {
        let mut joined: HashMap<String, Sums> = HashMap::new();
        for line in &self.lines {
            joined.entry(self.current_name(&line.name)).or_default().join(&line.sums);
        }
        let mut other = joined.remove(OTHER);
        let mut lines: Vec<TallyLine> =
            joined.into_iter().map(|(name, sums)| TallyLine { name, sums }).collect();
        lines.sort_by(|left, right| {
            let of = |line: &TallyLine| (line.sums.duration_ns, line.sums.requests);
            of(right).cmp(&of(left)).then_with(|| left.name.cmp(&right.name))
        });
        let kept_max = self.bounds.kinds_max.max(2) - 1;
        for line in lines.drain(kept_max.min(lines.len())..) {
            other.get_or_insert_default().join(&line.sums);
        }
        lines.extend(other.map(|sums| TallyLine { name: OTHER.to_string(), sums }));
        lines
    }

    /// Returns the sums of all requests.
    #[must_use]
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        self.lines.iter().for_each(|line| total.join(&line.sums));
        total
    }

    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        // Some kinds become one when more paths are known.
        let names_max = self.bounds.kinds_max.max(2) * 4 - 1;
        let name = if self.lines.len() < names_max { name } else { OTHER };
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.lines.push(TallyLine { name: name.to_string(), sums: Sums::default() });
        self.places.insert(name.to_string(), self.lines.len() - 1);
        self.lines.len() - 1
    }

    fn name_of(&mut self, request: &Request) -> String {
        if request.path.is_empty() {
            return "no request".to_string();
        }
        let method = match request.method.as_str() {
            "" => "",
            method => METHODS.iter().find(|known| **known == method).map_or("OTHER ", |known| known),
        };
        let blank = if method.is_empty() || method.ends_with(' ') { "" } else { " " };
        // Scanners ask for anything: what does not exist teaches nothing.
        let pattern = match request.status {
            Some(400 | 404 | 405 | 410 | 414) => {
                self.tree.find(&request.path).unwrap_or_else(|| "not found".to_string())
            }
            _ => match self.tree.learn(&request.path) {
                Some(pattern) => pattern,
                None => return OTHER.to_string(),
            },
        };
        format!("{method}{blank}{pattern}")
    }

    fn current_name(&self, name: &str) -> String {
        let Some(begin) = name.find('/') else { return name.to_string() };
        let (method, pattern) = name.split_at(begin);
        self.tree.current(pattern).map_or_else(|| name.to_string(), |current| format!("{method}{current}"))
    }
}
