//! Where functions begin, by the index of the call frame information: known for stripped files too.

use crate::elf::{Section, int};

/// Encodings of `.eh_frame_hdr` that linkers write: a pointer and a count of 4 bytes, and a table of offsets from the section.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const TABLE: usize = 12;
const ROW_BYTES: usize = 8;

/// Where the function that holds `address` begins; both as the file states them. `None` where the index does not tell. What lies
/// between two functions counts as the first one's.
pub(crate) fn function_start(index: &Section, address: u64) -> Option<u64> {
    if index.data.get(..4)? != ENCODINGS {
        return None;
    }
    let count = int(&index.data, 8)? as usize;
    let rows = index.data.get(TABLE..)?;
    let count = count.min(rows.len() / ROW_BYTES);
    let begin = |row: usize| {
        let offset = i64::from(int(rows, row * ROW_BYTES).unwrap_or(0) as i32);
        index.range.start.wrapping_add_signed(offset)
    };
    // Rows are sorted by where the function begins; in a damaged file any row may come out, and none past the end.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if begin(middle) <= address { low = middle + 1 } else { high = middle }
    }
    low.checked_sub(1).map(begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index(at: u64, functions: &[u64]) -> Section {
        let mut data = ENCODINGS.to_vec();
        data.extend(0u32.to_le_bytes());
        data.extend((functions.len() as u32).to_le_bytes());
        for function in functions {
            data.extend((function.wrapping_sub(at) as u32).to_le_bytes());
            data.extend(0u32.to_le_bytes());
        }
        Section { range: at..at + data.len() as u64, data }
    }

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let index = index(0x9000, &[0x1000, 0x1040, 0x20_0000]);
        let start = |address| function_start(&index, address);
        assert_eq!(start(0xfff), None);
        assert_eq!((start(0x1000), start(0x103f)), (Some(0x1000), Some(0x1000)));
        assert_eq!((start(0x1040), start(0x30_0000)), (Some(0x1040), Some(0x20_0000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_index_is_read_without_a_panic(
            mut data in prop::collection::vec(any::<u8>(), 0..64), sound in any::<bool>(), address: u64, at: u64,
        ) {
            if sound && data.len() > 4 {
                data[..4].copy_from_slice(&ENCODINGS);
            }
            let _ = function_start(&Section { range: at..at, data }, address);
        }
    }
}
