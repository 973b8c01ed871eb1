//! Where runs are in storage, as it is typed: `s3://BUCKET/FOLDER`.

use crate::error::{Error, Result};

const SCHEME: &str = "s3://";
/// Of a bucket's name, by the rules of S3.
const BUCKET_LETTERS: std::ops::RangeInclusive<usize> = 3..=63;
/// Of the folder, in bytes: a key has 1024 at most.
const FOLDER_BYTES_MAX: usize = 512;

/// A folder of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) bucket: String,
    /// Without a slash at its ends; empty for the whole bucket.
    pub(crate) folder: String,
}

/// Whether a text names a place in storage, rather than a folder.
pub fn is_place(text: &str) -> bool {
    text.starts_with(SCHEME)
}

impl Place {
    /// Parses `s3://BUCKET/FOLDER`.
    ///
    /// # Errors
    /// [`Error::Place`].
    pub fn parse(text: &str) -> Result<Place> {
        let wrong = || Error::Place(text.to_string());
        let rest = text.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let is_allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"-._".contains(&letter);
        let is_bucket = BUCKET_LETTERS.contains(&bucket.len()) && bucket.bytes().all(is_allowed);
        let folder = folder.trim_end_matches('/');
        let is_part = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && !part.chars().any(char::is_control)
        };
        let is_folder = folder.is_empty() || folder.split('/').all(is_part);
        if !is_bucket || !is_folder || folder.len() > FOLDER_BYTES_MAX {
            return Err(wrong());
        }
        Ok(Place { bucket: bucket.to_string(), folder: folder.to_string() })
    }

    /// Splits the last part off: the run of `s3://BUCKET/FOLDER/RUN`. `None`: the place is a whole bucket.
    pub fn split_run(&self) -> Option<(Place, String)> {
        let (folder, run) = self.folder.rsplit_once('/').unwrap_or(("", &self.folder));
        let place = Place { bucket: self.bucket.clone(), folder: folder.to_string() };
        (!run.is_empty()).then(|| (place, run.to_string()))
    }

    /// The key of something in this place.
    pub(crate) fn key(&self, parts: &[&str]) -> String {
        let folder = (!self.folder.is_empty()).then_some(self.folder.as_str());
        folder.into_iter().chain(parts.iter().copied()).collect::<Vec<_>>().join("/")
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{SCHEME}{}", self.bucket)?;
        if self.folder.is_empty() { Ok(()) } else { write!(out, "/{}", self.folder) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_and_perhaps_a_folder() {
        for (text, key) in [
            ("s3://lab", "run/run.json"),
            ("s3://lab/", "run/run.json"),
            ("s3://lab/a/b/", "a/b/run/run.json"),
        ] {
            let place = Place::parse(text).unwrap();
            assert_eq!(place.key(&["run", "run.json"]), key);
            assert_eq!(place.to_string(), text.trim_end_matches('/'));
        }
        let (place, run) = Place::parse("s3://lab/a/one").unwrap().split_run().unwrap();
        assert_eq!((place.to_string().as_str(), run.as_str()), ("s3://lab/a", "one"));
        assert_eq!(Place::parse("s3://lab").unwrap().split_run(), None);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in [
            "runs",
            "s3:/lab",
            "s3://",
            "s3:///a",
            "s3://la",
            "s3://lab//a",
            "s3://lab/../a",
            "s3://lab/a\nb",
            "s3://key:secret@lab/a",
            "S3://lab",
        ] {
            assert!(matches!(Place::parse(wrong), Err(Error::Place(_))), "{wrong}");
        }
    }
}
