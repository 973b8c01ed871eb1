//! Server builds at hand: those that can be fetched, those that were, and folders that were added.
//!
//! A build lies in `~/.cache/whyso/servers/NAME`: `build.json` says what it is and where it is from,
//! `tree` is the unpacked server. Wherever a server's folder can be given, the name does too.
//!
//! Nothing here knows a download server's address: packages are asked for by name, through the
//! machine's own `mvn` and `apt-get`, at whatever these are set up to use. What comes from Maven is
//! checked against a SHA-256 that [`catalogue`] holds; what comes from Debian by apt, against the
//! archive's signature with the machine's own key ring. Apt works on lists, a state and a cache of
//! our own: the machine's packages are neither changed nor looked at.

mod bounded;
pub mod catalogue;
mod debian;
mod elf;
mod fetch;
mod manifest;
mod maven;
mod unpack;

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result, io};
use crate::paths::cache_dir;
use crate::throwaway::home::FOLDER_PREFIX;

pub use catalogue::{Known, Source};
pub use elf::Symbols;
pub use fetch::{Progress, fetch};
pub use manifest::Manifest;

/// Longest name of a build, in characters.
const MAX_NAME: usize = 40;

/// One line of [`list`].
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub name: String,
    /// What it is, where it can be fetched.
    pub known: Option<&'static Known>,
    /// What is at hand, where it is; or why that can't be read.
    pub at_hand: Option<std::result::Result<Manifest, String>>,
}

/// The folder of all builds: `~/.cache/whyso/servers`.
pub fn folder() -> Result<PathBuf> {
    Ok(cache_dir()?.join("servers"))
}

/// What can be fetched, in the catalogue's order, then what else is at hand, by name.
///
/// # Errors
///
/// [`Error::Io`] where the folder can't be listed.
pub fn list() -> Result<Vec<Listed>> {
    let folder = folder()?;
    let mut listed: Vec<Listed> = catalogue::ALL
        .iter()
        .map(|known| Listed { name: known.name.to_string(), known: Some(known), at_hand: None })
        .collect();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(listed),
        Err(error) => return Err(io("cannot list", &folder)(error)),
    };
    let mut others = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if check_name(&name).is_err() {
            continue;
        }
        let at_hand = match Manifest::read(&entry.path()) {
            Ok(None) => continue,
            Ok(Some(manifest)) => Some(Ok(manifest)),
            Err(error) => Some(Err(error.to_string())),
        };
        match listed.iter_mut().find(|known| known.name == name) {
            Some(known) => known.at_hand = at_hand,
            None => others.push(Listed { name, known: None, at_hand }),
        }
    }
    others.sort_by(|a, b| a.name.cmp(&b.name));
    listed.extend(others);
    Ok(listed)
}

/// Gives a folder of an unpacked server a name. The folder stays where it is, and is not copied.
/// A name that was added before is given to the new folder.
///
/// # Errors
///
/// [`Error::BuildName`] where the name is none, or is that of a build that can be fetched;
/// [`Error::Binary`] where the folder holds no server that runs.
pub fn add(name: &str, tree: &Path) -> Result<Manifest> {
    check_name(name)?;
    if catalogue::find(name).is_some() {
        return Err(Error::BuildName(format!(
            "'{name}' is the name of a build that `whyso server fetch` brings: choose another name"
        )));
    }
    let tree = tree.canonicalize().map_err(io("cannot find the server's folder", tree))?;
    let binary = crate::find(Some(&tree))?;
    let manifest = Manifest::of(&binary, tree.display().to_string(), tree, String::new());
    let folder = folder()?.join(name);
    std::fs::create_dir_all(&folder).map_err(io("cannot make the folder", &folder))?;
    manifest.write(&folder)?;
    Ok(manifest)
}

/// Forgets a build, and removes what was fetched of it; an added folder itself is left alone. Returns
/// whether there was one.
///
/// # Errors
///
/// [`Error::BuildName`] where `name` is none, [`Error::Io`].
pub fn remove(name: &str) -> Result<bool> {
    check_name(name)?;
    let folder = folder()?.join(name);
    if !folder.exists() {
        return Ok(false);
    }
    std::fs::remove_dir_all(&folder).map_err(io("cannot remove", &folder))?;
    Ok(true)
}

/// Where a server lies that was given as a folder, a program, or the name of a build at hand. What
/// exists as a path is one, even where a build has the same name.
pub(crate) fn tree_of(given: &Path) -> Result<PathBuf> {
    let mut parts = given.components();
    let name = match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => name.to_str(),
        _ => None,
    };
    let Some(name) = name.filter(|name| !given.exists() && check_name(name).is_ok()) else {
        return Ok(given.to_path_buf());
    };
    if let Some(manifest) = Manifest::read(&folder()?.join(name))? {
        return Ok(manifest.tree);
    }
    Err(Error::BuildName(match catalogue::find(name) {
        Some(_) => format!("the build '{name}' is not here yet: fetch it with `whyso server fetch {name}`"),
        None => format!(
            "there is no folder '{name}', and no build of that name: `whyso server list` prints those that there are"
        ),
    }))
}

/// A name is a folder's: letters, digits, dots, dashes and underscores, a letter or digit first.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let mut characters = name.chars();
    let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let goes_on_well = characters.all(|one| one.is_ascii_alphanumeric() || ".-_".contains(one));
    if begins_well && goes_on_well && name.len() <= MAX_NAME && !name.starts_with(FOLDER_PREFIX) {
        return Ok(());
    }
    Err(Error::BuildName(format!(
        "'{}' is no name for a build: at most {MAX_NAME} letters, digits, dots, dashes and underscores, a letter or digit first, and not '{FOLDER_PREFIX}…'",
        name.escape_default()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_its_folder() {
        for good in ["mysql-sid", "8.4.3", "percona_5.7"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", ".maven", "whyso-server-7", "a b", "ä", &"x".repeat(41)] {
            assert!(check_name(bad).unwrap_err().is_wrong_use(), "{bad}");
        }
    }

    #[test]
    fn what_exists_is_a_path_and_what_does_not_is_a_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tree_of(folder.path()).unwrap(), folder.path());
        assert_eq!(tree_of(Path::new("./nowhere")).unwrap(), Path::new("./nowhere"));
        let error = tree_of(Path::new("no-such-build")).unwrap_err().to_string();
        assert!(error.contains("`whyso server list`"), "{error}");
    }

    #[test]
    fn a_fetched_build_s_name_cannot_be_taken() {
        let error = add(catalogue::ALL[0].name, Path::new("/")).unwrap_err();
        assert!(error.is_wrong_use() && error.to_string().contains("choose another name"), "{error}");
    }
}
