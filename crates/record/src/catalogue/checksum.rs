//! A checksum of a whole Parquet file, within it: a flipped bit anywhere in it is found.
//!
//! It is a text of the footer. The checksum is that of the file with zeros in its place.

/// Stands before eight hexadecimal digits.
const MARK: &[u8] = b"crc32c:";
const DIGITS: usize = 8;
pub(super) const KEY: &str = "whyso.checksum";
/// The text before there is a checksum.
pub(super) const BLANK: &str = "crc32c:00000000";

/// Fills in the checksum of a file. `None`: the file has no place for it.
pub(super) fn seal(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let at = place(&file)?;
    let sum = format!("{:08x}", crc32c::crc32c(&file));
    file[at..at + DIGITS].copy_from_slice(sum.as_bytes());
    Some(file)
}

/// Whether a file is as it was written.
pub(super) fn is_whole(file: &[u8]) -> bool {
    let Some(at) = place(file) else { return false };
    let (before, after) = (&file[..at], &file[at + DIGITS..]);
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(before), &[b'0'; DIGITS]), after);
    // As text: a letter in the other case is a flipped bit, too.
    file[at..at + DIGITS] == *format!("{sum:08x}").as_bytes()
}

/// Where the digits are: at the last mark, since texts of a run stand before the footer.
fn place(file: &[u8]) -> Option<usize> {
    let mark = file.windows(MARK.len()).rposition(|window| window == MARK)?;
    let at = mark + MARK.len();
    (at + DIGITS <= file.len()).then_some(at)
}
