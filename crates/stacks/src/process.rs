//! Which modules lie where in a process, and in those that were forked from the same one.

use std::ops::Range;
use std::path::PathBuf;

use framehop::{ExplicitModuleSectionInfo, Unwinder, UnwinderNative};

use crate::elf::Elf;
use crate::error::Error;
use crate::maps::{self, Mapping};
use crate::module::{self, Module, ModuleId};

/// More are left out: their frames are in no module.
const MAPPINGS_MAX: usize = 4096;

pub(crate) type NativeUnwinder = UnwinderNative<Vec<u8>, framehop::MayAllocateDuringUnwind>;

/// Code of a module in a process.
struct Place {
    range: Range<u64>,
    module: ModuleId,
    /// What is taken from an address to have the one that the file states.
    bias: u64,
}

/// Modules by address. The default has none.
pub(crate) struct Layout {
    mappings: Vec<Mapping>,
    places: Vec<Place>,
    pub(crate) unwinder: NativeUnwinder,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { mappings: Vec::new(), places: Vec::new(), unwinder: NativeUnwinder::new() }
    }
}

/// What a process has mapped now.
///
/// # Errors
/// The process is gone, or may not be read.
pub(crate) fn mappings(pid: u32) -> Result<Vec<Mapping>, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/maps"));
    let text = std::fs::read(&path).map_err(|cause| Error::NoMaps { pid, cause })?;
    let mut found = maps::parse(&String::from_utf8_lossy(&text));
    found.truncate(MAPPINGS_MAX);
    Ok(found)
}

impl Layout {
    /// Whether it is that of these mappings.
    pub(crate) fn is_of(&self, mappings: &[Mapping]) -> bool {
        self.mappings == mappings
    }

    /// The module that holds an address, and the address as the module's file states it.
    pub(crate) fn place(&self, address: u64) -> Option<(ModuleId, u64)> {
        let after = self.places.partition_point(|place| place.range.start <= address);
        let place = self.places.get(after.checked_sub(1)?)?;
        place.range.contains(&address).then(|| (place.module, address.wrapping_sub(place.bias)))
    }

    /// Makes it that of what process `pid` has mapped: what is new is added, what is gone is left out.
    pub(crate) fn follow(&mut self, pid: u32, found: Vec<Mapping>, modules: &mut Vec<Module>) {
        // What was unmapped since: another library may be there now.
        let gone: Vec<u64> = self
            .places
            .iter()
            .filter(|place| !found.iter().any(|mapping| mapping.range == place.range))
            .map(|place| place.range.start)
            .collect();
        for begin in gone {
            self.unwinder.remove_module(begin);
            self.places.retain(|place| place.range.start != begin);
        }
        for mapping in &found {
            if self.places.iter().any(|place| place.range == mapping.range) {
                continue;
            }
            // A file that can't be read leaves its frames without a name, and the stack's rest is lost.
            if let Ok(elf) = module::open(pid, mapping) {
                self.add(pid, mapping, elf, modules);
            }
        }
        self.places.sort_by_key(|place| place.range.start);
        self.mappings = found;
    }

    fn add(&mut self, pid: u32, mapping: &Mapping, elf: Elf, modules: &mut Vec<Module>) {
        let Some(bias) = elf.bias(mapping.range.start, mapping.offset) else { return };
        let same =
            modules.iter().position(|module| module.path == mapping.path && module.build_id == elf.build_id);
        let number = same.unwrap_or_else(|| {
            modules.push(Module::of(pid, &mapping.path, &elf));
            modules.len() - 1
        });
        let Elf { text, got, eh_frame, eh_frame_hdr, .. } = elf;
        let sections = ExplicitModuleSectionInfo {
            text_svma: text,
            got_svma: got,
            eh_frame_svma: eh_frame.as_ref().map(|section| section.range.clone()),
            eh_frame: eh_frame.map(|section| section.data),
            eh_frame_hdr_svma: eh_frame_hdr.as_ref().map(|section| section.range.clone()),
            eh_frame_hdr: eh_frame_hdr.map(|section| section.data),
            ..ExplicitModuleSectionInfo::default()
        };
        let name = mapping.path.display().to_string();
        self.unwinder.add_module(framehop::Module::new(name, mapping.range.clone(), bias, sections));
        self.places.push(Place {
            range: mapping.range.clone(),
            module: ModuleId(number as u32 + ModuleId::FIRST_FILE),
            bias,
        });
    }
}
