//! Compiles the programs of a MySQL Cluster that no package has: the management node, the data node, and the client that asks for their state.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bounded::{self, Bounds};
use crate::error::{Error, Result, io};

/// What is made.
const PROGRAMS: [&str; 3] = ["ndb_mgmd", "ndbd", "ndb_mgm"];
/// Programs that are needed for it. Libraries are looked for by `cmake`.
const TOOLS: [&str; 6] = ["cmake", "make", "g++", "bison", "pkg-config", "rpcgen"];
/// Packages of Debian with these programs and with the libraries.
const PACKAGES: &str = "cmake make g++ bison pkg-config libssl-dev libncurses-dev libtirpc-dev rpcsvc-proto";
/// Where the package keeps the source.
const ARCHIVE: &str = "usr/src/mysql/mysql-source.tar.gz";
/// Nothing but the storage engine's own programs.
const OPTIONS: [&str; 15] = [
    "-DWITH_NDB=ON",
    "-DWITH_NDB_JAVA=OFF",
    "-DWITH_NDB_TEST=OFF",
    "-DWITH_UNIT_TESTS=OFF",
    "-DWITH_SSL=system",
    "-DWITH_ROUTER=OFF",
    "-DWITH_ZLIB=bundled",
    "-DWITH_MYSQLX=OFF",
    "-DWITH_CURL=none",
    "-DWITH_AUTHENTICATION_WEBAUTHN=OFF",
    "-DWITH_FIDO=none",
    "-DWITH_AUTHENTICATION_CLIENT_PLUGINS=OFF",
    "-DWITH_AUTHENTICATION_LDAP=OFF",
    "-DWITH_AUTHENTICATION_KERBEROS=OFF",
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
];
/// Optimised enough to be measured, and compiled in a third of the time.
const FLAGS: [&str; 2] =
    ["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -DNDEBUG", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -DNDEBUG"];
const BOUNDS: Bounds = Bounds { all: Duration::from_secs(90 * 60), stall: Duration::from_secs(15 * 60) };

/// Refuses before anything is downloaded where a program is missing.
///
/// # Errors
/// [`Error::Build`] with the packages that are needed.
pub(super) fn check_tools() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |tool: &&str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    match TOOLS.iter().find(|tool| !is_here(tool)) {
        Some(tool) => Err(Error::Build(format!(
            "'{tool}' is needed to compile the data nodes and is not on the PATH: install it (Debian: apt-get install {PACKAGES})"
        ))),
        None => Ok(()),
    }
}

/// Compiles the programs from the unpacked package `package`, and copies them into the folder `to`. `step`: what is being done.
///
/// # Errors
/// [`Error::Build`] with the last lines of what failed.
pub(super) fn cluster_programs(package: &Path, work: &Path, to: &Path, step: &dyn Fn(&str)) -> Result<()> {
    let (source, made) = (work.join("mysql"), work.join("made"));
    for folder in [&source, &made, &to.to_path_buf()] {
        std::fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
    }
    step("unpacking the source");
    let mut unpack = Command::new("tar");
    unpack
        .arg("--extract")
        .arg("--gzip")
        .arg("--file")
        .arg(package.join(ARCHIVE))
        .arg("--directory")
        .arg(&source);
    bounded::run(unpack, &work.join("tar.log"), BOUNDS, &mut || 0)?;
    step("preparing to compile");
    let mut prepare = Command::new("cmake");
    prepare.arg("-S").arg(top_of(&source)?).arg("-B").arg(&made).args(OPTIONS).args(FLAGS);
    bounded::run(prepare, &work.join("cmake.log"), BOUNDS, &mut || 0).map_err(with_packages)?;
    let log = work.join("make.log");
    let mut make = Command::new("make");
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    make.arg(format!("--jobs={jobs}")).args(PROGRAMS).current_dir(&made);
    let mut hear = || {
        let percent = percent_of(&std::fs::read_to_string(&log).unwrap_or_default());
        step(&format!("compiling, {percent} %"));
        std::fs::metadata(&log).map_or(0, |about| about.len())
    };
    bounded::run(make, &log, BOUNDS, &mut hear).map_err(with_packages)?;
    for program in PROGRAMS {
        let (from, place) = (made.join("runtime_output_directory").join(program), to.join(program));
        std::fs::copy(&from, &place).map_err(io("cannot copy", &from))?;
    }
    Ok(())
}

/// The folder with the source's first `CMakeLists.txt`: the archive's own, or the only one in it.
fn top_of(source: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(source).map_err(io("cannot list", source))?;
    let below = entries.flatten().map(|entry| entry.path());
    let mut all = std::iter::once(source.to_path_buf()).chain(below);
    all.find(|folder| folder.join("CMakeLists.txt").is_file()).ok_or_else(|| {
        Error::Build("the package with the server's source holds none: it has changed".to_string())
    })
}

fn with_packages(error: Error) -> Error {
    match error {
        Error::Build(why) => {
            Error::Build(format!("{why}\nLibraries that it needs: apt-get install {PACKAGES}"))
        }
        other => other,
    }
}

/// How far `make` is, by the last line that says so, such as "[ 42%] Building CXX object".
fn percent_of(log: &str) -> u8 {
    let mut lines = log.lines().rev();
    let said = |line: &str| line.strip_prefix('[')?.split_once("%]")?.0.trim().parse().ok();
    lines.find_map(said).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_how_far_it_is() {
        let log = "[  0%] Built target zlib\n[ 42%] Building CXX object x\nx.cc: note: something [ 99%]\n";
        assert_eq!(percent_of(log), 42);
        assert_eq!(percent_of(""), 0);
        assert_eq!(percent_of("[100%] Built target ndbd\n"), 100);
    }

    #[test]
    fn the_source_is_found_in_a_folder_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        assert!(top_of(folder.path()).is_err());
        let below = folder.path().join("mysql-9.7.4");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("CMakeLists.txt"), "").unwrap();
        assert_eq!(top_of(folder.path()).unwrap(), below);
    }
}
