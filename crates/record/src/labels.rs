//! The user's own name and tags of a recording. They are no stream of the recorder's: they can be changed when the run has long ended, and
//! what was sealed stays as it is.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::{layout, private};

/// More of a file is not read.
const BYTES_MAX: u64 = 64 << 10;
/// Characters of a name.
const NAME_MAX: usize = 100;
/// Characters of a tag.
const TAG_MAX: usize = 40;
const TAGS_MAX: usize = 20;

/// What the user calls a recording.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Labels {
    /// Empty: it has none.
    pub name: String,
    /// Each once, in alphabetical order.
    pub tags: Vec<String>,
}

impl Labels {
    /// Checks what a user typed.
    ///
    /// # Errors
    /// The name or a tag is too long, or has characters that it may not have.
    pub fn new(name: &str, tags: impl IntoIterator<Item = String>) -> Result<Labels> {
        let name = name.trim();
        if name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(Error::Label(format!(
                "a name has at most {NAME_MAX} characters, and none that steers a terminal"
            )));
        }
        let mut tags: Vec<String> = tags.into_iter().map(|tag| tag.trim().to_string()).collect();
        tags.sort();
        tags.dedup();
        let is_allowed = |letter: char| letter.is_alphanumeric() || "-_.:=/+".contains(letter);
        let is_good =
            |tag: &String| (1..=TAG_MAX).contains(&tag.chars().count()) && tag.chars().all(is_allowed);
        if let Some(tag) = tags.iter().find(|tag| !is_good(tag)) {
            return Err(Error::Label(format!(
                "{tag:?} is no tag: give letters, digits and any of -_.:=/+, at most {TAG_MAX} characters"
            )));
        }
        if tags.len() > TAGS_MAX {
            return Err(Error::Label(format!("a run has at most {TAGS_MAX} tags")));
        }
        Ok(Labels { name: name.to_string(), tags })
    }

    pub fn is_empty(&self) -> bool {
        self.name.is_empty() && self.tags.is_empty()
    }
}

/// The labels of the recording in `dir`. A file that can't be read, or that holds what no label is, counts as none.
pub fn labels_of(dir: &Path) -> Labels {
    let Ok(bytes) = private::read_file(&dir.join(layout::LABELS), BYTES_MAX) else {
        return Labels::default();
    };
    let read: Labels = serde_json::from_slice(&bytes).unwrap_or_default();
    Labels::new(&read.name, read.tags).unwrap_or_default()
}

/// Replaces the labels of the recording in `dir`.
///
/// # Errors
/// The folder is no recording, or can't be written.
pub fn set_labels(dir: &Path, labels: &Labels) -> Result<()> {
    if !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let path = dir.join(layout::LABELS);
    let io = |cause| Error::io(&path, cause);
    let json = serde_json::to_string(labels).map_err(|cause| io(cause.into()))?;
    // Written next to it and then renamed: a reader never meets half of it.
    let new = dir.join(format!("{}labels-{}", layout::TEMPORARY_PREFIX, std::process::id()));
    let mut file = private::create_file(&new).map_err(io)?;
    file.write_all(json.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    std::fs::rename(&new, &path).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| tag.to_string()).collect()
    }

    #[test]
    fn labels_come_back_as_they_were_set_and_can_be_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let labels = Labels::new(" before the index ", tags(&["shop", "a/b=1", "shop"])).unwrap();
        assert_eq!(
            (labels.name.as_str(), &labels.tags[..]),
            ("before the index", &tags(&["a/b=1", "shop"])[..])
        );
        assert!(matches!(set_labels(folder.path(), &labels), Err(Error::NotARecording(_))));
        std::fs::write(folder.path().join(layout::RUN), "{}").unwrap();
        assert!(labels_of(folder.path()).is_empty());
        set_labels(folder.path(), &labels).unwrap();
        assert_eq!(labels_of(folder.path()), labels);
        set_labels(folder.path(), &Labels::default()).unwrap();
        assert!(labels_of(folder.path()).is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn what_is_no_label_is_refused_and_never_read() {
        let folder = tempfile::tempdir().unwrap();
        for (name, tag) in [("a\u{1b}[2J", "x"), (&"n".repeat(101)[..], "x"), ("a", "two words"), ("a", "")] {
            assert!(matches!(Labels::new(name, tags(&[tag])), Err(Error::Label(_))), "{name:?} {tag:?}");
        }
        let many = (0..21).map(|number| number.to_string());
        assert!(Labels::new("", many).is_err());
        for content in ["", "[]", "{\"name\":\"a\\u001b\"}", "{\"tags\":[\"a b\"]}"] {
            std::fs::write(folder.path().join(layout::LABELS), content).unwrap();
            assert!(labels_of(folder.path()).is_empty(), "{content}");
        }
    }
}
