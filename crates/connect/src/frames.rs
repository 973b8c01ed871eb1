//! What a server sends, frame by frame: what the driver can't survive is found before it gets there.

/// Bytes of a frame's header: three of its length, one of its number.
const HEADER_BYTES: usize = 4;
/// A frame of this length continues in the next one.
const LENGTH_MAX: usize = 0xff_ffff;
/// Begins an integer of eight more bytes. As a number of columns the driver makes room for all of them at once, which ends the process.
const EIGHT_BYTES: u8 = 0xfe;
/// `EIGHT_BYTES` and the integer. What is shorter is the end of the rows.
const LONG_INTEGER_BYTES: usize = 9;

/// Why a frame must not reach the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Harmful {
    /// Offset of the frame's first byte in the bytes that were checked; 0 where it is before them.
    pub(crate) at: usize,
    /// The frame's number in its sequence.
    pub(crate) sequence: u8,
    pub(crate) what: &'static str,
}

/// Follows the frames of one direction, in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes of the frame's body that are still to come.
    body_left: usize,
    /// The first byte of the body decides, and has not come yet.
    first_matters: bool,
    /// This frame continues the one before it.
    continues: bool,
    /// Where the frame began in the piece that is checked.
    begin: usize,
}

impl Frames {
    /// Checks the next piece. `Ok`: it may be passed on, except for the last bytes ([`undecided`](Frames::undecided)).
    ///
    /// # Errors
    /// The first frame that is harmful.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), Harmful> {
        let mut at = 0;
        self.begin = 0;
        while at < bytes.len() {
            if self.body_left == 0 {
                if self.header_bytes == 0 {
                    self.begin = at;
                }
                self.header[self.header_bytes] = bytes[at];
                self.header_bytes += 1;
                at += 1;
                if self.header_bytes == HEADER_BYTES {
                    self.header_bytes = 0;
                    self.begin_body()?;
                }
                continue;
            }
            if self.first_matters {
                self.first_matters = false;
                if bytes[at] == EIGHT_BYTES {
                    return Err(self.harmful("a length that no answer has"));
                }
            }
            let skipped = self.body_left.min(bytes.len() - at);
            self.body_left -= skipped;
            at += skipped;
        }
        Ok(())
    }

    /// Bytes at the end of the last piece that must wait. They are the header of a frame whose first byte has not arrived: the frame
    /// may be harmful.
    pub(crate) fn undecided(&self) -> usize {
        match (self.header_bytes, self.first_matters) {
            (0, true) => HEADER_BYTES,
            (bytes, _) => bytes,
        }
    }

    fn begin_body(&mut self) -> Result<(), Harmful> {
        let length = u32::from_le_bytes([self.header[0], self.header[1], self.header[2], 0]) as usize;
        if length == 0 && !self.continues {
            return Err(self.harmful("an empty packet"));
        }
        self.first_matters = !self.continues && length >= LONG_INTEGER_BYTES;
        self.continues = length == LENGTH_MAX;
        self.body_left = length;
        Ok(())
    }

    fn harmful(&self, what: &'static str) -> Harmful {
        Harmful { at: self.begin, sequence: self.header[3], what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(sequence: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = (body.len() as u32).to_le_bytes()[..3].to_vec();
        frame.push(sequence);
        frame.extend_from_slice(body);
        frame
    }

    /// In pieces of one size, each passed on as a relay does.
    fn passed_on(bytes: &[u8], size: usize) -> (Vec<u8>, Option<Harmful>) {
        let (mut frames, mut held, mut passed) = (Frames::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            match frames.check(piece) {
                Ok(()) => {
                    held.extend_from_slice(piece);
                    let whole = held.len() - frames.undecided();
                    passed.extend(held.drain(..whole));
                }
                Err(harmful) => {
                    held.extend_from_slice(&piece[..harmful.at]);
                    if harmful.at > 0 {
                        passed.append(&mut held);
                    }
                    return (passed, Some(harmful));
                }
            }
        }
        (passed, None)
    }

    #[test]
    fn whatever_the_pieces_all_that_is_harmless_is_passed_on_and_nothing_else() {
        let good = [
            frame(1, &[2]),
            frame(2, &[0xfe, 0, 0, 2, 0]),
            frame(3, &[7; 300]),
            frame(4, &[0xfd, 1, 0, 1, 9, 9, 9, 9, 9, 9]),
        ]
        .concat();
        let absurd = frame(5, &[0xfe, 0, 0, 0, 0, 0, 1, 0, 0]);
        for size in 1..=good.len() + 20 {
            assert_eq!(passed_on(&good, size), (good.clone(), None), "{size}");
            for (bad, sequence) in [(&frame(9, &[]), 9), (&absurd, 5)] {
                let (passed, harmful) = passed_on(&[good.as_slice(), bad].concat(), size);
                assert_eq!(passed, good, "{size}");
                assert_eq!(harmful.unwrap().sequence, sequence);
            }
        }
    }

    #[test]
    fn a_packet_of_several_frames_may_end_with_an_empty_one() {
        let mut long = vec![0xff, 0xff, 0xff, 1];
        long.resize(4 + LENGTH_MAX, 1);
        long.extend(frame(2, &[]));
        assert_eq!(passed_on(&long, 1 << 20).1, None);
        let next = [long.as_slice(), &frame(3, &[])].concat();
        assert_eq!(passed_on(&next, 1 << 20).1.unwrap().what, "an empty packet");
    }
}
