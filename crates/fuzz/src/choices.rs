//! Bytes, read as choices. Where they end, each choice is 0.

/// The rest of a case's bytes.
pub struct Choices<'b> {
    bytes: &'b [u8],
}

/// Numbers at which arithmetic, lengths and times go wrong.
const EXTREMES: [u64; 16] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
    u64::MAX - 7,
    1 << 40,
    1 << 53,
];

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Choices<'b> {
        Choices { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A number below `below`; 0 where that is 0.
    pub fn below(&mut self, below: usize) -> usize {
        let number = match below {
            0..=0x100 => usize::from(self.byte()),
            0x101..=0x1_0000 => usize::from(self.u16()),
            _ => self.u32() as usize,
        };
        if below == 0 { 0 } else { number % below }
    }

    /// One of these; the first where nothing is left.
    pub fn one_of<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// True once in this many calls on average.
    pub fn once_in(&mut self, times: u8) -> bool {
        self.byte() % times == times - 1
    }

    /// Any number, mostly one at which something goes wrong.
    pub fn number(&mut self) -> u64 {
        let kind = self.byte();
        if kind < 192 { EXTREMES[usize::from(kind) % EXTREMES.len()] } else { self.u64() }
    }

    /// Some bytes as they are, at most this many.
    pub fn some(&mut self, most: usize) -> &'b [u8] {
        let length = self.below(most + 1).min(self.bytes.len());
        let (some, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        some
    }

    pub fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.bytes)
    }
}
