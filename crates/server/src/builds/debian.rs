//! Fetches packages of another Debian suite than the machine's own, through the machine's apt. It uses apt's archive,
//! proxy and key ring, and lists, state and cache of its own. So the machine's packages stay unchanged.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bounded::{self, Bounds};
use super::folder_size::bytes_below;
use crate::error::{Error, Result, io};

const BOUNDS: Bounds = Bounds { all: Duration::from_secs(20 * 60), stall: Duration::from_secs(120) };
/// Bound on what apt only looks up.
const LOOK_UP: Bounds = Bounds { all: Duration::from_secs(120), stall: Duration::from_secs(120) };
/// The archive's public keys, as the package `debian-archive-keyring` brings them, old and new.
const KEY_RINGS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];
/// What to ask apt of each list that it knows.
const ARCHIVE_FORMAT: &str = "$(ORIGIN)|$(LABEL)|$(REPO_URI)";

/// One package, as apt says where it would take it from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) bytes: u64,
}

/// A suite of the Debian archive, with an apt of its own.
pub(super) struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// Reads the suite's lists into `folder`, which must be empty.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where this machine has no apt, no Debian archive or no key ring for it, or the
    /// lists are not available.
    pub(super) fn open(suite: &str, folder: &Path) -> Result<Suite> {
        let key_ring = KEY_RINGS.iter().find(|path| Path::new(path).is_file()).ok_or_else(|| {
            Error::Build(format!(
                "there is no key ring {} to check the Debian archive with: install the package debian-archive-keyring",
                KEY_RINGS[0]
            ))
        })?;
        for below in ["lists/partial", "archives/partial", "packages"] {
            let path = folder.join(below);
            std::fs::create_dir_all(&path).map_err(io("cannot make the folder", &path))?;
        }
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(io("cannot write", &path))
        };
        let mut ask = Command::new("apt-get");
        ask.args(["indextargets", "--format", ARCHIVE_FORMAT, "Created-By: Packages"]);
        let targets = bounded::run(ask, &folder.join("archives.log"), LOOK_UP, &mut || 0)?;
        let archive = archive_of(&targets).ok_or_else(|| {
            Error::Build(
                "this machine's apt knows no Debian archive, or has not looked at it yet: run `apt-get update`, or use a build from Maven or a folder of your own".to_string(),
            )
        })?;
        write("status", "")?;
        write(
            "debian.sources",
            &format!(
                "Types: deb\nURIs: {archive}\nSuites: {suite}\nComponents: main\nTargets: Packages\nSigned-By: {key_ring}\n"
            ),
        )?;
        write("apt.conf", &configuration(folder))?;
        let suite = Suite { folder: folder.to_path_buf() };
        suite.apt(&["update"], BOUNDS, &|_| ())?;
        Ok(suite)
    }

    /// The packages themselves and the libraries that they need, down to the C library.
    pub(super) fn resolve(&self, packages: &[&str]) -> Result<Vec<Package>> {
        let mut arguments = vec!["install", "--no-install-recommends", "--print-uris", "-qq"];
        arguments.extend(packages);
        let uris = self.apt(&arguments, LOOK_UP, &|_| ())?;
        let mut chosen: Vec<Package> = uris.lines().filter_map(package_of).collect();
        // a server needs no other program, and Perl only for scripts that are not used here
        chosen.retain(|package| {
            packages.contains(&package.name.as_str())
                || (package.name.starts_with("lib") && !package.name.starts_with("libperl"))
        });
        Ok(chosen)
    }

    /// Downloads packages, which apt checks against the signed lists, and gives the files.
    pub(super) fn download(&self, packages: &[Package], on_bytes: &dyn Fn(u64)) -> Result<Vec<PathBuf>> {
        let mut arguments = vec!["download".to_string()];
        arguments.extend(packages.iter().map(|package| format!("{}={}", package.name, package.version)));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.apt(&arguments, BOUNDS, on_bytes)?;
        let folder = self.folder.join("packages");
        let entries = std::fs::read_dir(&folder).map_err(io("cannot list", &folder))?;
        let files = entries.flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
        files.sort();
        if files.len() != packages.len() {
            return Err(Error::Build(format!(
                "apt-get downloaded {} of {} packages: try again",
                files.len(),
                packages.len()
            )));
        }
        Ok(files)
    }

    fn apt(&self, arguments: &[&str], bounds: Bounds, on_bytes: &dyn Fn(u64)) -> Result<String> {
        let packages = self.folder.join("packages");
        let mut command = Command::new("apt-get");
        command.arg("-c").arg(self.folder.join("apt.conf")).args(arguments).current_dir(&packages);
        let log = self.folder.join(format!("{}.log", arguments[0]));
        let mut step = || {
            on_bytes(bytes_below(&packages));
            bytes_below(&self.folder)
        };
        bounded::run(command, &log, bounds, &mut step)
    }
}

/// Unpacks a package into a root folder, without running anything of it.
pub(super) fn unpack(package: &Path, root: &Path, log: &Path) -> Result<()> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").arg(package).arg(root);
    bounded::run(command, log, LOOK_UP, &mut || 0).map(|_| ())
}

/// What apt reads after the machine's own settings: other lists, state and cache, and nothing that is
/// to be run before or after.
fn configuration(folder: &Path) -> String {
    let at = folder.display();
    let mut text = String::new();
    for hook in ["Update::Pre-Invoke", "Update::Post-Invoke", "Update::Post-Invoke-Success"] {
        text.push_str(&format!("#clear APT::{hook};\n"));
    }
    // a machine that prefers its own release would refuse another's
    text.push_str("#clear APT::Default-Release;\n");
    for (name, value) in [
        ("Dir::Etc::sourcelist", format!("{at}/debian.sources")),
        ("Dir::Etc::sourceparts", "/dev/null".to_string()),
        ("Dir::Etc::preferences", "/dev/null".to_string()),
        ("Dir::Etc::preferencesparts", "/dev/null".to_string()),
        ("Dir::State", at.to_string()),
        ("Dir::State::lists", format!("{at}/lists")),
        ("Dir::State::status", format!("{at}/status")),
        ("Dir::Cache", at.to_string()),
        ("Dir::Cache::archives", format!("{at}/archives")),
        ("Acquire::Languages", "none".to_string()),
        ("Acquire::Retries", "3".to_string()),
        ("Acquire::AllowInsecureRepositories", "false".to_string()),
        ("APT::Get::AllowUnauthenticated", "false".to_string()),
        // apt's own user can't reach a folder that is closed to others
        ("APT::Sandbox::User", "".to_string()),
    ] {
        text.push_str(&format!("{name} \"{value}\";\n"));
    }
    text
}

/// Where the machine takes Debian's packages from.
fn archive_of(targets: &str) -> Option<&str> {
    targets.lines().find_map(|line| {
        let mut fields = line.split('|');
        match (fields.next(), fields.next(), fields.next()) {
            (Some("Debian"), Some("Debian"), Some(archive)) if !archive.is_empty() => Some(archive),
            _ => None,
        }
    })
}

/// From a line of `--print-uris`: 'URI' NAME_VERSION_ARCHITECTURE.deb BYTES CHECKSUM.
fn package_of(line: &str) -> Option<Package> {
    let mut fields = line.split_whitespace();
    let (_, file, bytes) = (fields.next()?, fields.next()?, fields.next()?);
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(Package { name: name.to_string(), version: version.replace("%3a", ":"), bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_debian_s_own_and_not_its_security_updates_or_somebody_else_s() {
        let targets =
            "Artifactory|x|https://one/\nDebian|Debian-Security|https://two/\nDebian|Debian|https://three/\n";
        assert_eq!(archive_of(targets), Some("https://three/"));
        assert_eq!(archive_of("$(ORIGIN)|$(LABEL)|https://never-looked-at/\n"), None);
        assert_eq!(archive_of("Ubuntu|Ubuntu|https://four/\n"), None);
        assert_eq!(archive_of(""), None);
    }

    #[test]
    fn packages_are_read_with_epoch_and_size() {
        let line = "'https://x/libcrypt1_4.5.deb' libcrypt1_1%3a4.5.2+2025-1_amd64.deb 100216 MD5Sum:e8";
        let expected =
            Package { name: "libcrypt1".to_string(), version: "1:4.5.2+2025-1".to_string(), bytes: 100_216 };
        assert_eq!(package_of(line), Some(expected));
        assert_eq!(package_of("W: something"), None);
        assert_eq!(package_of(""), None);
    }
}
