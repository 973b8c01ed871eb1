use thiserror::Error;

/// The server sent what the protocol does not allow at this place. The connection can't be used any further.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    #[error("packet number {expected} was due, and number {got} came")]
    Sequence { expected: u8, got: u8 },
    #[error("a packet ended before its {field}")]
    TooShort { field: &'static str },
    #[error("a packet that begins with byte 0x{byte:02x} can't stand {place}")]
    Unexpected { byte: u8, place: &'static str },
    #[error("the answer was complete, and more bytes came")]
    AfterEnd,
    #[error("an empty packet can't stand {place}")]
    Empty { place: &'static str },
    #[error("more than {bytes_max} bytes came in one answer, which is more than can be held")]
    TooLarge { bytes_max: usize },
    #[error("a compressed packet does not unpack to the {expected} bytes that its header says")]
    Compression { expected: usize },
}
