//! A file whose code processes execute.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::elf::{Elf, Section};
use crate::error::Error;
use crate::function_starts::function_start;
use crate::maps::{Mapping, VDSO};

/// Number of a module within one [`crate::Unwinding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// Code in no module that is known: frames there have address 0.
    pub const NONE: ModuleId = ModuleId(0);
    /// The kernel: frames there have their address.
    pub const KERNEL: ModuleId = ModuleId(1);
    pub(crate) const FIRST_FILE: u32 = 2;
}

/// A module as it was when it was seen first.
#[derive(Clone, Debug)]
pub struct Module {
    /// As `/proc/PID/maps` has it.
    pub path: PathBuf,
    pub build_id: Option<String>,
    /// By which this process can open it, whatever the other's root folder is.
    pub(crate) file: PathBuf,
    pub(crate) has_symbols: bool,
    pub(crate) has_debug: bool,
    function_index: Option<Section>,
}

impl Module {
    /// The file's name without its folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Where the function that holds an address begins; both as the file states them.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        function_start(self.function_index.as_ref()?, address)
    }

    /// Whether the file at `path` is still the one whose code was executed.
    pub(crate) fn is_still_there(&self) -> bool {
        let now = File::open(&self.file).ok().and_then(|file| Elf::read(&file).ok());
        now.is_some_and(|now| now.build_id == self.build_id)
    }

    pub(crate) fn of(pid: u32, path: &Path, elf: &Elf) -> Module {
        Module {
            path: path.to_path_buf(),
            build_id: elf.build_id.clone(),
            file: readable_path(pid, path),
            has_symbols: elf.has_symbols,
            has_debug: elf.has_debug,
            function_index: elf.eh_frame_hdr.clone(),
        }
    }
}

/// The path by which this process can open what process `pid` calls `path`: through its root folder where that is another one, as in a
/// container.
pub(crate) fn readable_path(pid: u32, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let place = |path: &Path| std::fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    match (place(&root), place(Path::new("/"))) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            // A root folder that is no mount of its own: the kernel shows its files by their paths here.
            let within = root.join(path.strip_prefix("/").unwrap_or(path));
            if within.exists() || !path.exists() { within } else { path.to_path_buf() }
        }
        _ => path.to_path_buf(),
    }
}

/// Reads the file that a process has mapped: the mapped one itself where that is allowed, else the one of its name.
pub(crate) fn open(pid: u32, mapping: &Mapping) -> Result<Elf, Error> {
    let (begin, end) = (mapping.range.start, mapping.range.end);
    if mapping.path == Path::new(VDSO) {
        let memory = PathBuf::from(format!("/proc/{pid}/mem"));
        let unreadable = |cause| Error::Unreadable { path: memory.clone(), cause };
        let file = File::open(&memory).map_err(unreadable)?;
        let mut bytes = vec![0; (end - begin).min(VDSO_BYTES_MAX) as usize];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, begin).map_err(unreadable)?;
        return Elf::read(&bytes[..]);
    }
    let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{begin:x}-{end:x}"));
    let file = File::open(&mapped)
        .or_else(|_| File::open(readable_path(pid, &mapping.path)))
        .map_err(|cause| Error::Unreadable { path: mapping.path.clone(), cause })?;
    Elf::read(&file)
}

const VDSO_BYTES_MAX: u64 = 1 << 20;
