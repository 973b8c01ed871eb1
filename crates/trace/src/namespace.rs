//! The PID namespace that this program runs in. The kernel's programs give numbers as that namespace has them, which are those in `/proc`.

use std::mem::MaybeUninit;
use std::path::Path;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::error::Error;
use crate::namespace_skeleton::NamespaceSkelBuilder;

/// `PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`.
const INITIAL: u32 = 0xEFFF_FFFC;

/// A PID namespace; all zero: the kernel's own, or one that can't be distinguished from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PidNamespace {
    pub(crate) inode: u32,
    /// How deep it lies below the kernel's own.
    pub(crate) level: u32,
}

impl PidNamespace {
    /// This program's.
    ///
    /// # Errors
    /// `/proc` is that of another namespace, or the kernel does not say how deep this one lies.
    pub(crate) fn own() -> Result<PidNamespace, Error> {
        check_proc()?;
        let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        match inode_in(&link.to_string_lossy()) {
            Some(inode) if inode != INITIAL => Ok(PidNamespace { inode, level: own_level()? }),
            _ => Ok(PidNamespace::default()),
        }
    }
}

/// Checks that `/proc` has the processes of the PID namespace that this program runs in. In another one's, numbers mean other processes.
///
/// # Errors
/// It does not.
pub fn check_proc() -> Result<(), Error> {
    let link = match std::fs::read_link("/proc/self") {
        Ok(link) => Some(link),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && Path::new("/proc/stat").exists() => {
            None
        }
        // Without /proc nothing is read from it.
        Err(_) => return Ok(()),
    };
    let shown = link.map(|link| link.to_string_lossy().into_owned());
    let own = std::process::id();
    if shown.as_deref() == Some(own.to_string().as_str()) {
        Ok(())
    } else {
        Err(Error::OtherProc { own, shown })
    }
}

/// `pid:[4026531836]`.
fn inode_in(link: &str) -> Option<u32> {
    link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Has the kernel run a program that reads it from this thread: no file shows it.
fn own_level() -> Result<u32, Error> {
    libbpf_rs::set_print(None);
    let mut object = MaybeUninit::uninit();
    let open = NamespaceSkelBuilder::default().open(&mut object).map_err(Error::of)?;
    let skeleton = open.load().map_err(Error::of)?;
    let mut arguments = [0; 8];
    let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
    let level = skeleton.progs.own_level.test_run(input).map_err(Error::of)?.return_value;
    // The kernel allows 32, and only its own namespace is at 0.
    if (1..=32).contains(&level) {
        Ok(level)
    } else {
        Err(Error::of(std::io::Error::from_raw_os_error(libc::EPROTO).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_named_by_its_inode() {
        assert_eq!(inode_in("pid:[4026531836]"), Some(INITIAL));
        for odd in ["", "pid:[]", "pid:[x]", "net:[4026531836]", "pid:[4026531836"] {
            assert_eq!(inode_in(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_test_sees_its_own_processes() {
        check_proc().unwrap();
    }
}
