//! What unwinding needs of an ELF file: which part lies where, the call frame information, and the build id.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::error::Error;

const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SECTION_BYTES: usize = 64;
const SEGMENTS_MAX: usize = 1024;
const SECTIONS_MAX: usize = 4096;
/// Of one section: the largest servers have 10 MB of call frame information.
const SECTION_BYTES_MAX: u64 = 256 << 20;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
const BUILD_ID: u32 = 3;

/// A file, or memory that was read before.
pub(crate) trait Bytes {
    /// As many bytes as are there, up to `length`.
    fn at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

impl Bytes for File {
    fn at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        // A length that a damaged file announces is not set aside before it is known to be there.
        let there = self.metadata()?.len().saturating_sub(offset).min(length as u64);
        let mut bytes = vec![0; there as usize];
        self.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

impl Bytes for [u8] {
    fn at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let to = from.saturating_add(length).min(self.len());
        Ok(self[from..to].to_vec())
    }
}

/// A part of the file that is mapped: `address` is the one that the file states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// As the file states it.
    pub(crate) range: Range<u64>,
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elf {
    pub(crate) segments: Vec<Segment>,
    pub(crate) build_id: Option<String>,
    pub(crate) text: Option<Range<u64>>,
    pub(crate) got: Option<Range<u64>>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    /// Whether it has a symbol table beyond that of what it exports.
    pub(crate) has_symbols: bool,
    /// Whether it has debug information.
    pub(crate) has_debug: bool,
}

impl Elf {
    /// # Errors
    /// It is no ELF file of this width and byte order. A part that is missing or damaged is left out.
    pub(crate) fn read<B: Bytes + ?Sized>(file: &B) -> Result<Elf, Error> {
        let unreadable = |_| Error::NotElf { why: "its header can't be read" };
        let header = file.at(0, HEADER_BYTES).map_err(unreadable)?;
        if header.len() < HEADER_BYTES || header[..6] != *b"\x7fELF\x02\x01" {
            return Err(Error::NotElf { why: "it does not begin as one" });
        }
        let mut elf = Elf::default();
        elf.read_segments(file, &header);
        elf.read_sections(file, &header);
        Ok(elf)
    }

    fn read_segments<B: Bytes + ?Sized>(&mut self, file: &B, header: &[u8]) {
        let (Some(offset), Some(count)) = (long(header, 32), short(header, 56)) else { return };
        let count = usize::from(count).min(SEGMENTS_MAX);
        let Ok(table) = file.at(offset, count * SEGMENT_BYTES) else { return };
        for row in table.chunks_exact(SEGMENT_BYTES) {
            let parts = (int(row, 0), long(row, 8), long(row, 16), long(row, 32));
            let (Some(kind), Some(offset), Some(address), Some(bytes)) = parts else { continue };
            match kind {
                LOAD => self.segments.push(Segment { offset, address, bytes }),
                NOTE if self.build_id.is_none() => {
                    let notes = file.at(offset, bytes.min(1 << 16) as usize).unwrap_or_default();
                    self.build_id = build_id(&notes);
                }
                _ => {}
            }
        }
    }

    fn read_sections<B: Bytes + ?Sized>(&mut self, file: &B, header: &[u8]) {
        let parts = (long(header, 40), short(header, 60), short(header, 62));
        let (Some(offset), Some(count), Some(names)) = parts else { return };
        let count = usize::from(count).min(SECTIONS_MAX);
        let Ok(table) = file.at(offset, count * SECTION_BYTES) else { return };
        let rows: Vec<&[u8]> = table.chunks_exact(SECTION_BYTES).collect();
        let Some(names) = rows.get(usize::from(names)).and_then(|row| data(file, row)) else { return };
        for row in rows {
            let Some(name) = int(row, 0).and_then(|at| names.get(at as usize..)) else { continue };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let section = || Some(Section { range: range(row)?, data: data(file, row)? });
            match name {
                b".text" => self.text = range(row),
                b".got" => self.got = range(row),
                b".eh_frame" => self.eh_frame = section(),
                b".symtab" => self.has_symbols = true,
                b".debug_info" | b".zdebug_info" => self.has_debug = true,
                b".eh_frame_hdr" => self.eh_frame_hdr = section(),
                _ => {}
            }
        }
    }

    /// By how much a mapping of the file at `offset` to `begin` is moved from the addresses that the file states.
    pub(crate) fn bias(&self, begin: u64, offset: u64) -> Option<u64> {
        // A mapping begins at a page, a segment may begin within it.
        let fits = |segment: &&Segment| {
            segment.offset / PAGE <= offset / PAGE
                && offset < segment.offset.saturating_add(segment.bytes).next_multiple_of(PAGE)
        };
        let segment = self.segments.iter().filter(fits).max_by_key(|segment| segment.offset)?;
        Some(begin.wrapping_sub(offset).wrapping_add(segment.offset).wrapping_sub(segment.address))
    }
}

const PAGE: u64 = 4096;

fn range(row: &[u8]) -> Option<Range<u64>> {
    let (address, bytes) = (long(row, 16)?, long(row, 32)?);
    Some(address..address.checked_add(bytes)?)
}

fn data<B: Bytes + ?Sized>(file: &B, row: &[u8]) -> Option<Vec<u8>> {
    let (offset, bytes) = (long(row, 24)?, long(row, 32)?);
    if bytes > SECTION_BYTES_MAX {
        return None;
    }
    file.at(offset, bytes as usize).ok().filter(|data| data.len() as u64 == bytes)
}

fn build_id(notes: &[u8]) -> Option<String> {
    let mut at = 0usize;
    while let (Some(name), Some(bytes), Some(kind)) =
        (int(notes, at), int(notes, at.checked_add(4)?), int(notes, at.checked_add(8)?))
    {
        let name_at = at.checked_add(12)?;
        let data_at = name_at.checked_add((name as usize).checked_next_multiple_of(4)?)?;
        let data_end = data_at.checked_add(bytes as usize)?;
        if kind == BUILD_ID && notes.get(name_at..name_at.checked_add(4)?) == Some(b"GNU\0") {
            let id = notes.get(data_at..data_end)?;
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        at = data_end.checked_next_multiple_of(4)?;
    }
    None
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(crate) fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn our_own_program_has_what_unwinding_needs() {
        let elf = Elf::read(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(!elf.segments.is_empty());
        assert!(elf.eh_frame.is_some_and(|section| !section.data.is_empty()));
        assert!(elf.eh_frame_hdr.is_some() && elf.text.is_some());
    }

    #[test]
    fn a_mapping_is_moved_by_where_its_segment_lies() {
        let segment = |offset, address, bytes| Segment { offset, address, bytes };
        let segments = vec![segment(0, 0, 0x1000), segment(0x1e40, 0x2e40, 0x800)];
        let elf = Elf { segments, ..Elf::default() };
        assert_eq!(elf.bias(0x7000_0000, 0), Some(0x7000_0000));
        // The file's page 1 is mapped where address 0x2000 of the file is wanted.
        assert_eq!(elf.bias(0x7000_2000, 0x1000), Some(0x7000_0000));
        assert_eq!(elf.bias(0x7000_2000, 0x9000), None);
    }

    #[test]
    fn a_file_that_is_no_elf_is_a_clear_error() {
        let error = Elf::read(&b"#!/bin/sh\n"[..]).unwrap_err();
        assert!(error.to_string().starts_with("it is no 64-bit little-endian ELF file"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Our own program with bytes changed in its headers and tables.
        #[test]
        fn a_damaged_file_never_panics(
            places in prop::collection::vec((0usize..4096, any::<u8>()), 1..40),
            cut in 0usize..8192,
            in_header in any::<bool>(),
        ) {
            let mut bytes = File::open("/proc/self/exe").unwrap().at(0, 8192).unwrap();
            for (place, value) in places {
                let place = if in_header { 16 + place % 200 } else { place };
                bytes[place] = value;
            }
            bytes.truncate(cut);
            if let Ok(elf) = Elf::read(&bytes[..]) {
                let _ = elf.bias(0x7000_0000, 0x1000);
            }
        }

        #[test]
        fn any_notes_are_read_without_a_panic(notes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = build_id(&notes);
        }
    }
}
