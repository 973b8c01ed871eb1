//! Server builds: those that can be fetched, those that were fetched, and folders that were added.
//!
//! A build lies in `~/.cache/whyso/servers/NAME`: `build.json` describes it, and `tree` is the unpacked server. A build's name can replace a
//! server's folder everywhere.
//!
//! Nothing here knows a download server's address. The machine's own `mvn` and `apt-get` fetch packages by name, from
//! the servers that these are configured for.
//!
//! [`catalogue`] holds the SHA-256 of what comes from Maven. For what comes from Debian, apt checks the archive's
//! signature with the machine's own key ring. Apt works on lists, a state and a cache of our own: the machine's
//! packages are neither read nor changed.

mod bounded;
pub mod catalogue;
mod compile;
mod debian;
mod elf;
mod fetch;
mod folder_size;
mod manifest;
mod maven;
mod unpack;

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result, io};
use crate::find::{Binary, find_in};
use crate::paths::cache_dir;
use crate::throwaway::home::FOLDER_PREFIX;

pub use catalogue::{CatalogueBuild, Source};
pub use elf::Symbols;
pub use fetch::{Progress, fetch};
pub use manifest::Manifest;

/// Longest name of a build, in characters.
const MAX_NAME: usize = 40;

/// One line of [`list`].
#[derive(Debug)]
pub struct ListedBuild {
    pub name: String,
    /// The catalogue's entry, if the build can be fetched.
    pub source: Option<&'static CatalogueBuild>,
    /// The build on this machine, or why it can't be read. `None`: it is not here.
    pub local: Option<Result<Manifest>>,
}

/// The folder of all builds: `~/.cache/whyso/servers`.
pub fn folder() -> Result<PathBuf> {
    Ok(cache_dir()?.join("servers"))
}

/// Lists the builds that can be fetched, in the catalogue's order, then the other builds of this machine, by name.
///
/// # Errors
///
/// [`Error::Io`] if the folder can't be listed.
pub fn list() -> Result<Vec<ListedBuild>> {
    let folder = folder()?;
    let mut listed: Vec<ListedBuild> = catalogue::ALL
        .iter()
        .map(|source| ListedBuild { name: source.name.to_string(), source: Some(source), local: None })
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
        let local = Manifest::read(&entry.path()).transpose();
        if local.is_none() {
            continue;
        }
        match listed.iter_mut().find(|build| build.name == name) {
            Some(build) => build.local = local,
            None => others.push(ListedBuild { name, source: None, local }),
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
    let binary = find_in(Some(&tree))?;
    let manifest = Manifest::of(&binary, tree.display().to_string(), tree, String::new());
    let folder = folder()?.join(name);
    std::fs::create_dir_all(&folder).map_err(io("cannot make the folder", &folder))?;
    manifest.write(&folder)?;
    Ok(manifest)
}

/// Forgets a build, and removes what was fetched of it. An added folder itself stays. Returns whether there was a build.
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

/// Finds the server in an unpacked tree (`DIR`, `DIR/bin`, `DIR/sbin`, `DIR/libexec`, …) or of a build, by its name. Without either, it looks on
/// the PATH and in the usual folders. `mariadbd` comes before `mysqld`.
///
/// # Errors
///
/// [`Error::BuildName`] if there is no such build, [`Error::Binary`] if there is no server, or it does not run.
pub fn find(tree_or_name: Option<&Path>) -> Result<Binary> {
    let tree = tree_or_name.map(tree_of).transpose()?;
    find_in(tree.as_deref())
}

/// Returns the tree of a server that is named by a folder, a program, or the name of a build. What exists as a path is a path, even if a build has
/// the same name.
fn tree_of(tree_or_name: &Path) -> Result<PathBuf> {
    let mut parts = tree_or_name.components();
    let name = match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => name.to_str(),
        _ => None,
    };
    let Some(name) = name.filter(|name| !tree_or_name.exists() && check_name(name).is_ok()) else {
        return Ok(tree_or_name.to_path_buf());
    };
    if let Some(manifest) = Manifest::read(&folder()?.join(name))? {
        return Ok(manifest.tree);
    }
    Err(Error::BuildName(match catalogue::find(name) {
        Some(_) => format!("the build '{name}' is not here yet: fetch it with `whyso server fetch {name}`"),
        None => format!(
            "there is no folder '{name}', and no build of that name: `whyso server list` lists the builds"
        ),
    }))
}

/// A name is a folder's: letters, digits, dots, dashes and underscores, a letter or digit first.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let mut characters = name.chars();
    let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let continues_well =
        characters.all(|character| character.is_ascii_alphanumeric() || ".-_".contains(character));
    if begins_well && continues_well && name.len() <= MAX_NAME && !name.starts_with(FOLDER_PREFIX) {
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
