//! Changes to files: anywhere, where their structure is, and so that their digests fit again.

use crate::choices::Choices;
use crate::corpus::{Files, RUN};

const MANIFEST: &str = "manifest.jsonl";
const MAGIC: &[u8] = b"whysowa1";
/// How far from an end the structure of a Parquet file or of a frame mostly lies.
const NEAR_BYTES: usize = 4096;
const REPEATED_BYTES_MAX: usize = 1 << 16;

fn place(choices: &mut Choices<'_>, length: usize) -> usize {
    match choices.byte() % 4 {
        0 => length.saturating_sub(1 + choices.below(NEAR_BYTES)),
        1 => choices.below(length.min(NEAR_BYTES)),
        // A field of a fixed width is hit as a whole.
        2 => choices.below(length) & !7,
        _ => choices.below(length),
    }
}

/// Makes one change to a file's bytes.
pub(super) fn damage(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) {
    let kind = choices.byte() % 8;
    let at = place(choices, bytes.len());
    match kind {
        0 => {
            let bit = choices.byte() % 8;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        1 | 2 => {
            let width = *choices.one_of(&[8, 4, 2, 1]);
            let number = choices.number().to_le_bytes();
            for (byte, new) in bytes.iter_mut().skip(at).zip(&number[..width]) {
                *byte = *new;
            }
        }
        3 => {
            let until = (at + choices.below(300)).min(bytes.len());
            drop(bytes.drain(at..until));
        }
        4 => {
            let new = choices.some(24).to_vec();
            drop(bytes.splice(at..at, new));
        }
        5 => bytes.truncate(at),
        6 => {
            let from = place(choices, bytes.len());
            let length = choices.below(300).min(bytes.len() - at.max(from));
            bytes.copy_within(from..from + length, at);
        }
        _ => {
            let byte = choices.byte();
            let length = choices.below(REPEATED_BYTES_MAX);
            drop(bytes.splice(at..at, std::iter::repeat_n(byte, length)));
        }
    }
}

/// The payloads of a write-ahead file.
pub(super) fn payloads(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = file.strip_prefix(MAGIC).unwrap_or_default();
    let mut payloads = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some(payload) = after.get(4..4 + length) else { break };
        payloads.push(payload.to_vec());
        rest = &after[4 + length..];
    }
    payloads
}

/// A write-ahead file whose checksums are right.
pub(super) fn write_ahead_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    for payload in payloads {
        let length = (payload.len() as u32).to_le_bytes();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), payload);
        file.extend(length);
        file.extend(checksum.to_le_bytes());
        file.extend(payload);
    }
    file
}

/// Changes the payloads of a write-ahead file.
pub(super) fn damage_write_ahead(choices: &mut Choices<'_>, file: &mut Vec<u8>) {
    let mut payloads = payloads(file);
    if payloads.is_empty() {
        return damage(choices, file);
    }
    let (at, other) = (choices.below(payloads.len()), choices.below(payloads.len()));
    match choices.byte() % 8 {
        0 => payloads.swap(at, other),
        1 => payloads.push(payloads[at].clone()),
        2 => drop(payloads.remove(at)),
        _ => damage(choices, &mut payloads[at]),
    }
    *file = write_ahead_of(&payloads);
}

/// Makes the manifest list each finished file as it is.
pub(super) fn fit_manifest(files: &mut Files) {
    let is_listed = |name: &str| name == RUN || name.ends_with(".parquet");
    let lines = files.iter().filter(|(name, _)| is_listed(name)).map(|(name, content)| {
        let (bytes, crc32c) = (content.len(), crc32c::crc32c(content));
        let json = serde_json::json!({ "file": name, "bytes": bytes, "crc32c": crc32c }).to_string();
        format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes()))
    });
    let manifest: String = lines.collect();
    files.retain(|(name, _)| name != MANIFEST);
    files.push((MANIFEST.to_string(), manifest.into_bytes()));
}
