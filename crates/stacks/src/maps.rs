//! `/proc/PID/maps`: which file lies where in a process.

use std::ops::Range;
use std::path::PathBuf;

/// Code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    /// Where in the file the range begins.
    pub(crate) offset: u64,
    pub(crate) path: PathBuf,
}

/// What `[vdso]` is called in `/proc/PID/maps`: code of the kernel's, without a file.
pub(crate) const VDSO: &str = "[vdso]";

/// The mappings that may be executed and have a name, in order of address. Lines that are not understood are left out.
pub(crate) fn parse(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(mapping).collect()
}

/// `55d0c8a00000-55d0c8c00000 r-xp 00684000 fe:01 1234   /usr/sbin/mariadbd`
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (begin, end) = word()?.split_once('-')?;
    let permissions = word()?;
    let offset = word()?;
    let (_device, _inode) = (word()?, word()?);
    let path = rest.trim();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    if path.is_empty() || permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let range = hex(begin)?..hex(end)?;
    (range.start < range.end).then_some(Mapping { range, offset: hex(offset)?, path: PathBuf::from(path) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
5590a1000000-5590a1684000 r--p 00000000 fe:01 1053 /usr/sbin/mariadbd
5590a1684000-5590a1fb2000 r-xp 00684000 fe:01 1053 /usr/sbin/mariadbd
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000100000-7f0000101000 r-xp 00000000 00:00 0
7f1111000000-7f1111100000 r-xp 00026000 fe:01 77   /opt/with a space/libx.so (deleted)
7ffd0c5f4000-7ffd0c5f6000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn code_with_a_name_is_found_and_nothing_else() {
        let found = parse(MAPS);
        let paths: Vec<&str> = found.iter().map(|mapping| mapping.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/usr/sbin/mariadbd", "/opt/with a space/libx.so", VDSO]);
        assert_eq!(found[0].range, 0x5590_a168_4000..0x5590_a1fb_2000);
        assert_eq!(found[0].offset, 0x68_4000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9a-f rxp:/\\[\\]\n-]{0,200}") {
            for mapping in parse(&text) {
                prop_assert!(mapping.range.start < mapping.range.end);
            }
        }
    }
}
