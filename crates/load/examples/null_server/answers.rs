//! The packets, as a MariaDB 10.11.19 on Debian 12 sent them to sysbench 1.0.20's oltp scripts over libmariadb 3.3.

/// What a client and we have agreed on, as far as answers differ by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) deprecate_eof: bool,
    /// Executions carry no column definitions once the statement was prepared.
    pub(crate) cache_metadata: bool,
    /// Column definitions carry one field more.
    pub(crate) extended_metadata: bool,
}

/// What a statement is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One row of a CHAR(120).
    Row,
    /// 100 rows of it, as for the ranges of sysbench.
    Rows,
    /// The OK of an UPDATE, with its text.
    Update,
    /// Any other OK.
    Done,
}

/// By its first word; a SELECT over a range has BETWEEN, and gives one row where it has SUM.
pub(crate) fn kind_of(sql: &[u8]) -> Kind {
    let begins = |word: &[u8]| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let has = |word: &[u8]| sql.windows(word.len()).any(|part| part == word);
    if begins(b"SELECT") {
        return if has(b"BETWEEN") && !has(b"SUM(") { Kind::Rows } else { Kind::Row };
    }
    if begins(b"UPDATE") { Kind::Update } else { Kind::Done }
}

const AUTOCOMMIT: u8 = 2;
const PARAMETER: &[u8] = b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\x06\x80\0\0\0\0";
const COLUMN: &[u8] = b"\x03def\x05whyso\x07sbtest1\x07sbtest1\x01c\x01c";
const COLUMN_TYPE: &[u8] = b"\x0c\x2d\0\xe0\x01\0\0\xfe\x01\0\0\0\0";
const VALUE: &[u8] =
    b"47557244213-64108714665-96024246737-80015203926-54150398257-20350344566-88804067003-19531593454-\
    57780396438-62974520480";
const UPDATED: &[u8] = b"Rows matched: 1  Changed: 1  Warnings: 0";
const ROWS: usize = 100;

/// Protocol 10; what it can do is what that MariaDB could, TLS and compression left out.
const CAPABILITIES: u32 = 0x81ff_f7fe & !(1 << 5) & !(1 << 11);
const EXTENDED_CAPABILITIES: u32 = 0x1d;
const DEPRECATE_EOF: u32 = 1 << 24;
const EXTENDED_METADATA: u32 = 1 << 3;
const CACHE_METADATA: u32 = 1 << 4;

/// The greeting; the nonce is always the same, since no password is looked at.
pub(crate) fn greeting() -> Vec<u8> {
    let mut payload = b"\x0a5.5.5-10.11.19-MariaDB-null\0\x01\0\0\0abcdefgh\0".to_vec();
    let [low, high, higher, highest] = CAPABILITIES.to_le_bytes();
    payload.extend_from_slice(&[low, high, 8, AUTOCOMMIT, 0, higher, highest, 21]);
    payload.extend_from_slice(&[0; 6]);
    payload.extend_from_slice(&EXTENDED_CAPABILITIES.to_le_bytes());
    payload.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    let mut out = Vec::new();
    packet(&mut out, 0, &payload);
    out
}

/// What a client's answer to the greeting says: capabilities first, MariaDB's own at the end of the filler.
pub(crate) fn agreed(response: &[u8]) -> Option<Capabilities> {
    let capabilities = u32::from_le_bytes(response.get(..4)?.try_into().ok()?);
    let extended = u32::from_le_bytes(response.get(28..32)?.try_into().ok()?);
    // A client that means MySQL's protocol sets the bit that MariaDB's own clients don't set.
    let extended = if capabilities & 1 == 0 { extended } else { 0 };
    Some(Capabilities {
        deprecate_eof: capabilities & DEPRECATE_EOF != 0,
        cache_metadata: extended & CACHE_METADATA != 0,
        extended_metadata: extended & EXTENDED_METADATA != 0,
    })
}

/// Every answer to an execution or a query, for each thing that can be agreed on.
pub(crate) struct AnswerCatalogue {
    by_agreed: Vec<Answers>,
}

/// Those for one.
pub(crate) struct Answers {
    agreed: Capabilities,
    /// By [`Kind`].
    text: [Vec<u8>; 4],
    binary: [Vec<u8>; 4],
}

impl AnswerCatalogue {
    pub(crate) fn new() -> AnswerCatalogue {
        let bit = |number: usize, place: usize| number >> place & 1 == 1;
        let by_agreed = (0..8)
            .map(|number| Capabilities {
                deprecate_eof: bit(number, 0),
                cache_metadata: bit(number, 1),
                extended_metadata: bit(number, 2),
            })
            .map(Answers::new);
        AnswerCatalogue { by_agreed: by_agreed.collect() }
    }

    pub(crate) fn of(&self, agreed: Capabilities) -> &Answers {
        let number = usize::from(agreed.deprecate_eof)
            | usize::from(agreed.cache_metadata) << 1
            | usize::from(agreed.extended_metadata) << 2;
        &self.by_agreed[number]
    }
}

impl Answers {
    fn new(agreed: Capabilities) -> Answers {
        let both = |is_binary: bool| {
            [Kind::Row, Kind::Rows, Kind::Update, Kind::Done].map(|kind| match kind {
                Kind::Row => result_set(agreed, 1, is_binary),
                Kind::Rows => result_set(agreed, ROWS, is_binary),
                Kind::Update => ok(UPDATED),
                Kind::Done => ok(b""),
            })
        };
        Answers { agreed, text: both(false), binary: both(true) }
    }

    pub(crate) fn to_query(&self, kind: Kind) -> &[u8] {
        &self.text[kind as usize]
    }

    pub(crate) fn to_execution(&self, kind: Kind) -> &[u8] {
        &self.binary[kind as usize]
    }

    /// The answer to a `COM_STMT_PREPARE`.
    pub(crate) fn prepared(&self, out: &mut Vec<u8>, statement_id: u32, sql: &[u8]) {
        let params = sql.iter().filter(|byte| **byte == b'?').count() as u16;
        let columns = u16::from(matches!(kind_of(sql), Kind::Row | Kind::Rows));
        let mut payload = vec![0];
        payload.extend_from_slice(&statement_id.to_le_bytes());
        payload.extend_from_slice(&columns.to_le_bytes());
        payload.extend_from_slice(&params.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]);
        packet(out, 1, &payload);
        let mut sequence = 2;
        let mut parameter = PARAMETER.to_vec();
        if !self.agreed.extended_metadata {
            // The field that stands before the types, which is empty.
            parameter.remove(9);
        }
        for (definitions, definition) in [(params, parameter), (columns, column(self.agreed))] {
            for _ in 0..definitions {
                packet(out, sequence, &definition);
                sequence = sequence.wrapping_add(1);
            }
            if definitions > 0 && !self.agreed.deprecate_eof {
                packet(out, sequence, &[0xfe, 0, 0, AUTOCOMMIT, 0]);
                sequence = sequence.wrapping_add(1);
            }
        }
    }
}

fn column(agreed: Capabilities) -> Vec<u8> {
    let extended: &[u8] = if agreed.extended_metadata { &[0] } else { &[] };
    [COLUMN, extended, COLUMN_TYPE].concat()
}

fn result_set(agreed: Capabilities, rows: usize, is_binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let has_definitions = !(is_binary && agreed.cache_metadata);
    let mut sequence: u8 = 1;
    let mut next = |out: &mut Vec<u8>, payload: &[u8]| {
        packet(out, sequence, payload);
        sequence = sequence.wrapping_add(1);
    };
    match agreed.cache_metadata {
        true => next(&mut out, &[1, u8::from(has_definitions)]),
        false => next(&mut out, &[1]),
    }
    let end_of_definitions = [0xfe, 0, 0, AUTOCOMMIT, 0];
    if has_definitions {
        next(&mut out, &column(agreed));
    }
    if !agreed.deprecate_eof {
        next(&mut out, &end_of_definitions);
    }
    let mut row = if is_binary { vec![0, 0] } else { Vec::new() };
    row.push(VALUE.len() as u8);
    row.extend_from_slice(VALUE);
    for _ in 0..rows {
        next(&mut out, &row);
    }
    match agreed.deprecate_eof {
        true => next(&mut out, &[0xfe, 0, 0, AUTOCOMMIT, 0, 0, 0]),
        false => next(&mut out, &end_of_definitions),
    }
    out
}

/// One row affected.
fn ok(message: &[u8]) -> Vec<u8> {
    let mut payload = vec![0, 1, 0, AUTOCOMMIT, 0, 0, 0];
    if !message.is_empty() {
        payload.push(message.len() as u8);
        payload.extend_from_slice(message);
    }
    let mut out = Vec::new();
    packet(&mut out, 1, &payload);
    out
}

pub(crate) fn packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    out.push(sequence);
    out.extend_from_slice(payload);
}
