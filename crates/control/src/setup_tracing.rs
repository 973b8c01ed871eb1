//! `whyso setup-tracing`: a copy of the program that traces without root, for the members of one group.
//!
//! It is a copy, and not the program itself. The mode of a program with capabilities shuts out everyone else. The next
//! installation of whyso would take the capabilities away without notice.

mod folder;
mod group;

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, fsetxattr, lgetxattr};

use crate::error::Error;
use group::Group;

/// Where the copy lies where nothing else is asked for.
pub const DEFAULT_TRACED_PROGRAM: &str = "/usr/local/bin/whyso-traced";

/// For its owner and the group only.
const MODE: u32 = 0o750;
const CAPABILITIES: &CStr = c"security.capability";
/// On a copy whose group was created with it, so that it is removed with it.
const OWN_GROUP: &CStr = c"trusted.whyso_group";

/// What each capability of the copy is for.
pub const TRACING_CAPABILITIES: [(&str, &str); 3] = [
    ("cap_bpf", "loads the programs that count where time goes into the kernel"),
    ("cap_perfmon", "attaches them to its events, and samples stacks"),
    (
        "cap_sys_ptrace",
        "reads the memory, the maps and the files of the server's process, for stacks and the names of functions",
    ),
];

/// CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF, permitted and effective, as capabilities(7) lays them out. First comes the
/// revision with the bit "effective", then permitted and inheritable, low and high halves.
const NEEDED: [u8; 20] = {
    let mut bytes = [0; 20];
    bytes[0] = 1; // effective
    bytes[3] = 2; // revision 2
    bytes[6] = 1 << (19 - 16); // CAP_SYS_PTRACE
    bytes[12] = 1 << (38 - 32) | 1 << (39 - 32); // CAP_PERFMON, CAP_BPF
    bytes
};

/// What `whyso setup-tracing` is asked for.
#[derive(Clone, Debug)]
pub struct SetupTracing {
    /// The name of a group or its number. A name that does not exist yet is created.
    pub group: String,
    /// Where the copy is to lie.
    pub to: PathBuf,
    /// Only shows the steps.
    pub dry_run: bool,
}

/// Sets tracing up, or shows how. Returns what was done, a line each.
///
/// # Errors
/// [`Error::Plan`] without root, and where the copy would not be safe at its place. [`Error::Failed`] where a step fails; then no copy is left.
pub fn set_up_tracing(asked: &SetupTracing) -> Result<Vec<String>, Error> {
    require_root(asked, "")?;
    let to = folder::checked(&asked.to)?;
    if let Some(about) = existing(&to)? {
        let own = fs::metadata("/proc/self/exe").map_err(failed("can't find this program", &to))?;
        if (own.dev(), own.ino()) == (about.dev(), about.ino()) {
            return Err(Error::Plan(format!(
                "{} is the program that is running: run the original, or give another path with --to",
                to.display()
            )));
        }
        require_ours(&to, &about)?;
    }
    let group = Group::find(&asked.group)?;
    let mut steps = Vec::new();
    if group.is_none() {
        steps.push(format!("create the group {}: groupadd --system {0}", asked.group));
    }
    let program = std::env::current_exe().map_err(failed("can't find this program", &to))?;
    let (from, shown, name) = (program.display(), to.display(), &asked.group);
    steps.push(format!(
        "copy {from} to {shown}, for root and the group {name} only: install -g {name} -m 0750 {from} {shown}"
    ));
    steps.push(format!(
        "give the copy three capabilities: setcap cap_sys_ptrace,cap_perfmon,cap_bpf=ep {shown}"
    ));
    if !asked.dry_run {
        let was_created = group.is_none();
        let group = group.map_or_else(|| Group::create(&asked.group), Ok)?;
        let is_own_group = was_created || is_own_group(&to);
        if let Err(error) = copy_with_capabilities(&to, group.id, is_own_group) {
            if was_created {
                let _ = group.remove();
            }
            return Err(error);
        }
    }
    Ok(steps)
}

/// Removes what [`set_up_tracing`] created, or shows how. Returns what was done, one line each.
///
/// # Errors
/// [`Error::Plan`] without root, and where `setup-tracing` did not create the file. [`Error::Failed`] where a step fails.
pub fn undo_tracing_setup(asked: &SetupTracing) -> Result<Vec<String>, Error> {
    require_root(asked, " --undo")?;
    let to = folder::resolved(&asked.to)?;
    let Some(about) = existing(&to)? else {
        return Ok(vec![format!("nothing to undo: there is no {}", to.display())]);
    };
    require_ours(&to, &about)?;
    let group = if is_own_group(&to) { Group::of_id(about.gid())? } else { None };
    let mut steps = vec![format!("remove the copy: rm {}", to.display())];
    if let Some(group) = &group {
        steps.push(format!("remove the group that was created for it: groupdel {}", group.name));
    }
    if !asked.dry_run {
        fs::remove_file(&to).map_err(failed("can't remove", &to))?;
        if let Some(group) = group {
            group.remove()?;
        }
    }
    Ok(steps)
}

fn require_root(asked: &SetupTracing, option: &str) -> Result<(), Error> {
    if asked.dry_run || rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "only root may give a program capabilities: run sudo whyso setup-tracing{option}, or add --dry-run to see each step"
    )))
}

/// What lies at a path, not through a link.
fn existing(path: &Path) -> Result<Option<fs::Metadata>, Error> {
    match fs::symlink_metadata(path) {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("can't look at", path)(error)),
    }
}

/// Only a file that `setup-tracing` created is replaced or removed.
fn require_ours(path: &Path, about: &fs::Metadata) -> Result<(), Error> {
    let mut capabilities = [0_u8; NEEDED.len()];
    let has_capabilities =
        lgetxattr(path, CAPABILITIES, &mut capabilities).is_ok_and(|length| length == NEEDED.len());
    let is_ours = about.is_file() && about.uid() == 0 && about.mode() & 0o7777 == MODE;
    if is_ours && has_capabilities && capabilities == NEEDED {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "{} exists, and setup-tracing did not make it: give another path with --to, or remove it yourself",
        path.display()
    )))
}

fn is_own_group(path: &Path) -> bool {
    lgetxattr(path, OWN_GROUP, &mut [0_u8; 1]).is_ok()
}

/// The copy appears at its path only once it is complete and nobody else can run it.
fn copy_with_capabilities(to: &Path, group: u32, is_own_group: bool) -> Result<(), Error> {
    let new = to.with_extension(format!("new-{}", std::process::id()));
    let done = (|| {
        let mut program = File::open("/proc/self/exe")?;
        let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        io::copy(&mut program, &mut copy)?;
        fchown(&copy, Some(0), Some(group))?;
        copy.set_permissions(Permissions::from_mode(MODE))?;
        // Last: writing to a file and changing its owner take capabilities away.
        fsetxattr(&copy, CAPABILITIES, &NEEDED, XattrFlags::empty())?;
        if is_own_group {
            // A file system without such attributes: then the group stays when the copy goes.
            let _ = fsetxattr(&copy, OWN_GROUP, b"1", XattrFlags::empty());
        }
        copy.sync_all()?;
        fs::rename(&new, to)
    })();
    done.map_err(|error: io::Error| {
        let _ = fs::remove_file(&new);
        failed("can't make a copy with capabilities at", to)(error)
    })
}

fn failed<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |error| Error::Failed(format!("{what} {}: {error}", path.display()))
}
