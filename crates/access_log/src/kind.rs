//! Kinds of requests, learned from their paths.
//!
//! A tree has a level per segment of a path. Identifiers are holes (`{}`) from the begin. A place with more than
//! [`KindBounds::segments_max`] different segments has one hole in place of all of them. Which places these are does not depend on the order
//! of the paths, as long as the tree is not full.

use std::collections::BTreeMap;

use crate::segment::{MORE, normalise, query_keys, widen};

/// Segments of a path that a pattern has; `…` stands for those after them.
const DEPTH_MAX: usize = 8;
const HOST_SCHEMES: [&str; 2] = ["http://", "https://"];

/// How much a tree keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindBounds {
    /// Different segments in one place, from 1.
    pub segments_max: usize,
    /// All places together. Paths that need more have no pattern.
    pub places_max: usize,
}

impl Default for KindBounds {
    fn default() -> KindBounds {
        KindBounds { segments_max: 40, places_max: 8192 }
    }
}

#[derive(Clone, Debug, Default)]
struct Place {
    next: BTreeMap<String, Place>,
    /// It had too many different segments.
    is_wide: bool,
}

/// The paths that were learned.
#[derive(Clone, Debug)]
pub struct KindTree {
    root: Place,
    places: usize,
    bounds: KindBounds,
}

impl KindTree {
    #[must_use]
    pub fn new(bounds: KindBounds) -> KindTree {
        KindTree { root: Place::default(), places: 0, bounds }
    }

    /// Learns a path, and returns its pattern as far as is known by now. `None`: the tree is full.
    pub fn learn(&mut self, path: &str) -> Option<String> {
        let segments = segments_of(path);
        let mut place = &mut self.root;
        let mut pattern = String::new();
        let mut has_widened = false;
        for segment in &segments {
            let mut name = place.name_of(segment);
            if !place.next.contains_key(&name) {
                if self.places >= self.bounds.places_max {
                    return None;
                }
                place.next.insert(name.clone(), Place::default());
                self.places += 1;
                if place.is_crowded(&self.bounds) {
                    place.widen(&self.bounds);
                    has_widened = true;
                    name = place.name_of(segment);
                }
            }
            push(&mut pattern, &name);
            place = place.next.get_mut(&name)?;
        }
        if has_widened {
            self.places = self.root.count();
        }
        Some(pattern)
    }

    /// Returns the pattern of a path without learning it. `None`: no path of this kind was learned.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<String> {
        self.follow(&segments_of(path))
    }

    /// Returns what a pattern that was returned before is now.
    #[must_use]
    pub fn current(&self, pattern: &str) -> Option<String> {
        let (path, query) = pattern.split_at(pattern.find('?').unwrap_or(pattern.len()));
        let mut segments: Vec<String> = path.split('/').skip(1).map(str::to_string).collect();
        if !query.is_empty() {
            segments.push(query.to_string());
        }
        self.follow(&segments)
    }

    fn follow(&self, segments: &[String]) -> Option<String> {
        let mut place = &self.root;
        let mut pattern = String::new();
        for segment in segments {
            let name = place.name_of(segment);
            place = place.next.get(&name)?;
            push(&mut pattern, &name);
        }
        Some(pattern)
    }
}

fn push(pattern: &mut String, name: &str) {
    if !name.starts_with('?') {
        pattern.push('/');
    }
    pattern.push_str(name);
}

/// Returns the segments of a path, without identifiers, and the keys of its query as the last one.
fn segments_of(path: &str) -> Vec<String> {
    let path = HOST_SCHEMES
        .iter()
        .find_map(|scheme| path.strip_prefix(scheme))
        .map_or(path, |with_host| with_host.find('/').map_or("/", |begin| &with_host[begin..]));
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts = path.strip_prefix('/').unwrap_or(path).split('/');
    let mut segments: Vec<String> =
        parts.take(DEPTH_MAX + 1).map(|part| normalise(part).into_owned()).collect();
    if segments.len() > DEPTH_MAX {
        segments[DEPTH_MAX] = MORE.to_string();
    }
    let keys = query_keys(query);
    if !keys.is_empty() {
        segments.push(keys);
    }
    segments
}

impl Place {
    fn name_of(&self, segment: &str) -> String {
        if self.is_wide { widen(segment).into_owned() } else { segment.to_string() }
    }

    fn is_crowded(&self, bounds: &KindBounds) -> bool {
        let different = self.next.keys().filter(|name| widen(name) != name.as_str());
        !self.is_wide && different.count() > bounds.segments_max
    }

    /// Joins all that is after this place, by what remains of the names.
    fn widen(&mut self, bounds: &KindBounds) {
        self.is_wide = true;
        for (name, place) in std::mem::take(&mut self.next) {
            self.next.entry(widen(&name).into_owned()).or_default().join(place, bounds);
        }
    }

    fn join(&mut self, other: Place, bounds: &KindBounds) {
        if other.is_wide && !self.is_wide {
            self.widen(bounds);
        }
        for (name, place) in other.next {
            self.next.entry(self.name_of(&name)).or_default().join(place, bounds);
        }
        if self.is_crowded(bounds) {
            self.widen(bounds);
        }
    }

    fn count(&self) -> usize {
        self.next.len() + self.next.values().map(Place::count).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_with_many_different_segments_becomes_a_hole() {
        let mut tree = KindTree::new(KindBounds { segments_max: 3, places_max: 100 });
        for name in ["ann", "bob", "cyd", "dan"] {
            tree.learn(&format!("/users/{name}/orders"));
        }
        assert_eq!(tree.current("/users/ann/orders").as_deref(), Some("/users/{}/orders"));
        assert_eq!(tree.learn("/users/eve/orders?page=2").as_deref(), Some("/users/{}/orders?page"));
        assert_eq!(tree.find("/users/zoe/orders").as_deref(), Some("/users/{}/orders"));
        assert_eq!(tree.find("/wp-login.php"), None);
        assert_eq!(tree.learn("http://shop.example/users/7").as_deref(), Some("/users/{}"));
        assert_eq!(tree.learn("/").as_deref(), Some("/"));
        assert_eq!(tree.learn("*").as_deref(), Some("/*"));
        assert_eq!(tree.learn("/1/2/3/4/5/6/7/8/9/10").as_deref(), Some("/{}/{}/{}/{}/{}/{}/{}/{}/…"));
    }

    #[test]
    fn a_full_tree_learns_no_more() {
        let mut tree = KindTree::new(KindBounds { segments_max: 10, places_max: 2 });
        assert!(tree.learn("/a").is_some() && tree.learn("/b").is_some());
        assert_eq!(tree.learn("/c"), None);
        assert_eq!(tree.learn("/a").as_deref(), Some("/a"));
    }
}
