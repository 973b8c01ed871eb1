//! Which names a program carries: what a profile of it can show.
//!
//! Reads the section headers of a 64-bit little-endian ELF file (the System V ABI's "Object Files").

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a program says about its own code, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Symbols {
    /// It is no ELF file that we understand.
    Unknown,
    /// The names that a plugin may call, at most.
    Stripped,
    /// `.symtab`: every function's name.
    Table,
    /// `.debug_info`: functions, files and lines, inlined functions too.
    Dwarf,
}

impl std::fmt::Display for Symbols {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Symbols::Unknown => "unknown",
            Symbols::Stripped => "stripped",
            Symbols::Table => "symtab",
            Symbols::Dwarf => "DWARF",
        })
    }
}

const HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;
/// The type of a section whose content lies elsewhere: a stripped program's remains.
const NO_BITS: u32 = 8;
/// Bounds on what is read of a file that may be no program at all.
const MAX_SECTIONS: usize = 4096;
const MAX_NAMES_BYTES: u64 = 1 << 20;

impl Symbols {
    /// Of the program at `path`; unknown where it can't be read.
    pub fn of(path: &Path) -> Symbols {
        let sections = std::fs::File::open(path).ok().and_then(|mut file| sections(&mut file));
        let Some(sections) = sections else { return Symbols::Unknown };
        let has = |wanted: &str| sections.iter().any(|name| name == wanted);
        if has(".debug_info") || has(".zdebug_info") {
            Symbols::Dwarf
        } else if has(".symtab") {
            Symbols::Table
        } else {
            Symbols::Stripped
        }
    }
}

/// Names of the sections that have content.
fn sections(file: &mut (impl Read + Seek)) -> Option<Vec<String>> {
    let header: [u8; HEADER_BYTES] = read_at(file, 0, HEADER_BYTES)?.try_into().ok()?;
    let is_elf_64_little_endian = header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]);
    let (count, names_index) = (u16_at(&header, 60)? as usize, u16_at(&header, 62)? as usize);
    if !is_elf_64_little_endian
        || u16_at(&header, 58)? as usize != SECTION_HEADER_BYTES
        || count > MAX_SECTIONS
        || names_index >= count
    {
        return None;
    }
    let table = read_at(file, u64_at(&header, 40)?, count * SECTION_HEADER_BYTES)?;
    let headers: Vec<&[u8]> = table.chunks_exact(SECTION_HEADER_BYTES).collect();
    let names_header = headers[names_index];
    let names_bytes = u64_at(names_header, 32)?.min(MAX_NAMES_BYTES) as usize;
    let names = read_at(file, u64_at(names_header, 24)?, names_bytes)?;
    let mut found = Vec::new();
    for header in headers {
        let has_content = u32_at(header, 4)? != NO_BITS && u64_at(header, 32)? > 0;
        let name = names.get(u32_at(header, 0)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        if has_content {
            found.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(found)
}

fn read_at(file: &mut (impl Read + Seek), offset: u64, length: usize) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    #[test]
    fn this_test_carries_its_own_names_and_a_script_none() {
        let this_program = std::env::current_exe().unwrap();
        assert!(Symbols::of(&this_program) >= Symbols::Table);
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert_eq!(Symbols::of(script.path()), Symbols::Unknown);
        assert_eq!(Symbols::of(Path::new("/nowhere")), Symbols::Unknown);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_damaged_program_is_unknown_or_says_less_but_never_panics(
            damage in proptest::collection::vec((0_usize..HEADER_BYTES, any::<u8>()), 1..8)
        ) {
            let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            // what it finds does not matter: that it ends does
            let _ = sections(&mut Cursor::new(bytes));
        }
    }
}
