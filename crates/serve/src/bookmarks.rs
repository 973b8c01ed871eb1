//! Sets of charts, saved by name and applied to any run: those that ship, and the user's own, one TOML file each.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::error::{Answer, Refusal};
use crate::series::Mode;

/// The sets that ship, from the folder `charts`.
const SHIPPED: [&str; 11] = [
    include_str!("../../../charts/innodb-redo.toml"),
    include_str!("../../../charts/buffer-pool.toml"),
    include_str!("../../../charts/locks.toml"),
    include_str!("../../../charts/spins-and-waits.toml"),
    include_str!("../../../charts/sorts.toml"),
    include_str!("../../../charts/mdl.toml"),
    include_str!("../../../charts/io.toml"),
    include_str!("../../../charts/connections.toml"),
    include_str!("../../../charts/host.toml"),
    include_str!("../../../charts/hosts.toml"),
    include_str!("../../../charts/requests.toml"),
];

const NAME_CHARACTERS_MAX: usize = 80;
const ABOUT_CHARACTERS_MAX: usize = 500;
/// Charts of a set.
const CHARTS_MAX: usize = 60;
/// Series of a chart.
const SERIES_MAX: usize = 40;
/// Sets of the user's own.
const SETS_MAX: usize = 500;
const FILE_BYTES_MAX: u64 = 256 << 10;
const ENDING: &str = "toml";

/// A set of charts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bookmark {
    /// No control characters, and more than blanks.
    #[schema(
        min_length = 1,
        max_length = 80,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    pub(crate) name: String,
    #[serde(default)]
    #[schema(max_length = 500, default = "")]
    about: String,
    #[schema(inline, min_items = 1, max_items = 60)]
    chart: Vec<Chart>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Chart {
    title: String,
    #[schema(inline, min_items = 1, max_items = 40)]
    series: Vec<MetricName>,
    #[serde(default)]
    #[schema(inline)]
    mode: Mode,
    /// Instances that are drawn, if a metric has more; 0: all.
    #[serde(default = "Chart::top")]
    #[schema(minimum = 0, maximum = 100, default = Chart::top)]
    top: usize,
    #[serde(default)]
    #[schema(default = false)]
    log: bool,
    #[serde(default)]
    #[schema(default = false)]
    sum: bool,
}

impl Chart {
    fn top() -> usize {
        5
    }
}

/// The name of a metric.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MetricName {
    /// The name of a host; "server": the machine of the server; "*": each host that has the metric.
    #[serde(default = "MetricName::host")]
    #[schema(default = MetricName::host)]
    host: String,
    source: String,
    metric: String,
    /// One instance; null: all of them.
    #[serde(default)]
    instance: Option<String>,
}

impl MetricName {
    fn host() -> String {
        "server".to_string()
    }
}

impl Bookmark {
    /// Parses a set.
    ///
    /// # Errors
    /// 400 if the text is no set, or too large a set.
    pub(crate) fn from_toml(text: &str) -> Answer<Bookmark> {
        let read = toml::from_str::<Bookmark>(text);
        let bookmark =
            read.map_err(|error| Refusal::bad(format!("this is no set of charts: {}", error.message())))?;
        bookmark.checked()
    }

    /// Checks the bounds of a set, and trims its name.
    ///
    /// # Errors
    /// 400 if a bound is broken.
    pub(crate) fn checked(self) -> Answer<Bookmark> {
        let name = self.name.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX || name.chars().any(char::is_control)
        {
            return Err(Refusal::bad(format!(
                "a set of charts needs a name of at most {NAME_CHARACTERS_MAX} characters"
            )));
        }
        let is_sound =
            |chart: &Chart| !chart.series.is_empty() && chart.series.len() <= SERIES_MAX && chart.top <= 100;
        if self.chart.is_empty() || self.chart.len() > CHARTS_MAX || !self.chart.iter().all(is_sound) {
            return Err(Refusal::bad(format!(
                "a set has 1 to {CHARTS_MAX} charts, each of 1 to {SERIES_MAX} series, of at most 100 instances"
            )));
        }
        if self.about.chars().count() > ABOUT_CHARACTERS_MAX {
            return Err(Refusal::bad(format!(
                "describe the set in at most {ABOUT_CHARACTERS_MAX} characters"
            )));
        }
        Ok(Bookmark { name: name.to_string(), ..self })
    }

    /// Writes the set as TOML, without values that are the default.
    pub(crate) fn to_toml(&self) -> String {
        let mut out = format!("name = {}\n", quoted(&self.name));
        if !self.about.is_empty() {
            out.push_str(&format!("about = {}\n", quoted(&self.about)));
        }
        for chart in &self.chart {
            out.push_str(&format!("\n[[chart]]\ntitle = {}\n", quoted(&chart.title)));
            match chart.mode {
                Mode::Rate => {}
                Mode::Raw => out.push_str("mode = \"raw\"\n"),
                Mode::PerTransaction => out.push_str("mode = \"per_transaction\"\n"),
            }
            if chart.top != Chart::top() {
                out.push_str(&format!("top = {}\n", chart.top));
            }
            for (is, name) in [(chart.log, "log"), (chart.sum, "sum")] {
                if is {
                    out.push_str(&format!("{name} = true\n"));
                }
            }
            out.push_str("series = [\n");
            for series in &chart.series {
                let mut fields = vec![("source", &series.source), ("metric", &series.metric)];
                if series.host != MetricName::host() {
                    fields.insert(0, ("host", &series.host));
                }
                fields.extend(series.instance.as_ref().map(|instance| ("instance", instance)));
                let fields: Vec<String> =
                    fields.into_iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
                out.push_str(&format!("  {{ {} }},\n", fields.join(", ")));
            }
            out.push_str("]\n");
        }
        out
    }

    /// Returns the name of the set's file: a digest of its name, so that no name leads to another folder.
    fn key(&self) -> String {
        let digest = Sha256::digest(self.name.as_bytes());
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&digest[..12])
    }
}

/// Quotes a string. A JSON string is a TOML string, except that TOML escapes DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A set with its key, as the page lists it.
#[derive(Serialize)]
pub(crate) struct ListedSet {
    key: String,
    /// Whether it is the user's own.
    own: bool,
    #[serde(flatten)]
    bookmark: Bookmark,
}

/// The fields of a listed set: a schema of a [`Bookmark`] allows no others next to its own.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ListedSet)]
#[expect(dead_code, reason = "describes ListedSet")]
pub(crate) struct ListedSetFields {
    key: String,
    /// Whether it is the user's own.
    own: bool,
    name: String,
    about: String,
    #[schema(inline)]
    chart: Vec<Chart>,
}

/// The user's own sets, and those that ship.
pub(crate) struct Bookmarks {
    folder: PathBuf,
}

impl Bookmarks {
    pub(crate) fn new(folder: PathBuf) -> Bookmarks {
        Bookmarks { folder }
    }

    /// Lists the user's own sets by name, then those that ship. The second list has the files that hold no set, with the reason.
    pub(crate) fn list(&self) -> (Vec<ListedSet>, Vec<String>) {
        let mut problems = Vec::new();
        let mut own = Vec::new();
        for path in self.files() {
            match read(&path) {
                Ok(bookmark) => own.push(ListedSet { key: bookmark.key(), own: true, bookmark }),
                Err(why) => problems.push(format!("{}: {}", path.display(), why.why())),
            }
        }
        own.sort_by(|a, b| a.bookmark.name.cmp(&b.bookmark.name));
        let shipped = SHIPPED.iter().filter_map(|text| Bookmark::from_toml(text).ok());
        own.extend(shipped.map(|bookmark| ListedSet { key: bookmark.key(), own: false, bookmark }));
        (own, problems)
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_set = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(is_set).take(SETS_MAX).collect();
        files.sort();
        files
    }

    /// Saves a set under its name, in place of the one that had it.
    pub(crate) fn save(&self, bookmark: &Bookmark) -> Answer<()> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |cause| Refusal::from(whyso_record::Error::Io { path, cause })
        };
        let text = bookmark.to_toml();
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(Refusal::bad(format!("a set of charts has at most {} KiB", FILE_BYTES_MAX >> 10)));
        }
        fs::create_dir_all(&self.folder).map_err(io(&self.folder))?;
        let others = self.with_key(&bookmark.key());
        if others.is_empty() && self.files().len() >= SETS_MAX {
            return Err(Refusal::bad(format!("there are {SETS_MAX} sets of charts already: delete one")));
        }
        let path = self.folder.join(format!("{}.{ENDING}", bookmark.key()));
        let whole = path.with_extension("new");
        fs::write(&whole, text).map_err(io(&whole))?;
        fs::rename(&whole, &path).map_err(io(&path))?;
        // A file that the user put there under another name held the same set.
        for other in others.iter().filter(|other| **other != path) {
            fs::remove_file(other).map_err(io(other))?;
        }
        Ok(())
    }

    /// Removes a set of the user's own.
    ///
    /// # Errors
    /// 404 if the user has no such set.
    pub(crate) fn remove(&self, key: &str) -> Answer<()> {
        let files = self.with_key(key);
        if files.is_empty() {
            return Err(Refusal::not_found("there is no such set of your own: those that ship stay"));
        }
        for path in files {
            fs::remove_file(&path).map_err(|cause| whyso_record::Error::Io { path, cause })?;
        }
        Ok(())
    }

    /// Finds a set by its key.
    ///
    /// # Errors
    /// 404 if there is no such set.
    pub(crate) fn find(&self, key: &str) -> Answer<Bookmark> {
        let found = self.list().0.into_iter().find(|set| set.key == key).map(|set| set.bookmark);
        found.ok_or_else(|| Refusal::not_found("there is no such set of charts"))
    }

    /// Returns the files that hold the set of a key. Their names can differ from it.
    fn with_key(&self, key: &str) -> Vec<PathBuf> {
        let holds = |path: &PathBuf| read(path).is_ok_and(|bookmark| bookmark.key() == key);
        self.files().into_iter().filter(holds).collect()
    }
}

fn read(path: &Path) -> Answer<Bookmark> {
    let io = |cause| Refusal::from(whyso_record::Error::Io { path: path.to_path_buf(), cause });
    if fs::metadata(path).map_err(io)?.len() > FILE_BYTES_MAX {
        return Err(Refusal::bad("this file is too large for a set of charts"));
    }
    Bookmark::from_toml(&fs::read_to_string(path).map_err(io)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_that_ships_is_one_and_comes_back_as_it_was() {
        let (listed, problems) = Bookmarks::new(PathBuf::from("/nowhere")).list();
        assert_eq!((listed.len(), problems.len()), (SHIPPED.len(), 0));
        for set in listed {
            let again = Bookmark::from_toml(&set.bookmark.to_toml()).unwrap();
            assert_eq!(again, set.bookmark);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts");
        assert_eq!(fs::read_dir(folder).unwrap().count(), SHIPPED.len());
    }

    #[test]
    fn a_set_of_any_name_is_saved_in_the_folder_of_sets() {
        let folder = tempfile::tempdir().unwrap();
        let bookmarks = Bookmarks::new(folder.path().join("charts"));
        let drawn = MetricName {
            host: "h\"\u{7f}".into(),
            source: "s".into(),
            metric: "m\n".into(),
            instance: Some("\\".into()),
        };
        let chart =
            Chart { title: "t".into(), series: vec![drawn], mode: Mode::Raw, top: 3, log: true, sum: false };
        for name in ["../../etc/passwd", "a/b", "ä \"quoted\" 'x'", "."] {
            let set = Bookmark { name: name.into(), about: "</script>".into(), chart: vec![chart.clone()] };
            bookmarks.save(&set.clone().checked().unwrap()).unwrap();
            assert_eq!(bookmarks.find(&set.key()).unwrap(), set);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mine = |bookmarks: &Bookmarks| bookmarks.list().0.into_iter().filter(|set| set.own).count();
        assert_eq!(mine(&bookmarks), 4);
        let key = bookmarks.list().0[0].key.clone();
        bookmarks.remove(&key).unwrap();
        assert!(bookmarks.remove(&key).is_err() && mine(&bookmarks) == 3);
        fs::write(folder.path().join("charts/broken.toml"), "name = 1").unwrap();
        assert_eq!(bookmarks.list().1.len(), 1);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in [
            "",
            "name = \"a\"",
            "name = \"a\"\nchart = []",
            "name = \"\"\n[[chart]]\ntitle=\"t\"\nseries=[{source=\"s\",metric=\"m\"}]",
            "\u{0}",
        ] {
            assert!(Bookmark::from_toml(text).is_err(), "{text:?}");
        }
    }
}
