//! One client: where it stands, and what its packets are answered with.

use crate::answers::{AnswerCatalogue, Answers, Capabilities, Kind, agreed, kind_of, packet};

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const HEADER_BYTES: usize = 4;

/// Whether the connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    Close,
}

#[derive(Debug, Default)]
pub(crate) struct Session {
    /// `None` until the client has answered the greeting.
    agreed: Option<Capabilities>,
    /// Kind of statement i + 1.
    statements: Vec<Kind>,
    /// A packet's beginning, whose rest has not come.
    partial: Vec<u8>,
}

impl Session {
    /// Appends the answers to what was received.
    pub(crate) fn receive(&mut self, canned: &AnswerCatalogue, received: &[u8], out: &mut Vec<u8>) -> Then {
        if self.partial.is_empty() {
            let (byte_count, then) = self.take_packets(canned, received, out);
            self.partial.extend_from_slice(&received[byte_count..]);
            return then;
        }
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(received);
        let (byte_count, then) = self.take_packets(canned, &all, out);
        all.drain(..byte_count);
        self.partial = all;
        then
    }

    /// Answers the whole packets among the bytes; gives how many bytes they have.
    fn take_packets(&mut self, canned: &AnswerCatalogue, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Then) {
        let mut byte_count = 0;
        while let [low, middle, high, sequence, rest @ ..] = &bytes[byte_count..] {
            let length = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
            let Some(payload) = rest.get(..length) else { break };
            if self.answer(canned, *sequence, payload, out) == Then::Close {
                return (bytes.len(), Then::Close);
            }
            byte_count += HEADER_BYTES + length;
        }
        (byte_count, Then::GoOn)
    }

    fn answer(&mut self, canned: &AnswerCatalogue, sequence: u8, payload: &[u8], out: &mut Vec<u8>) -> Then {
        let Some(agreed_before) = self.agreed else {
            self.agreed = agreed(payload);
            packet(out, sequence.wrapping_add(1), OK);
            return if self.agreed.is_some() { Then::GoOn } else { Then::Close };
        };
        let answers = canned.of(agreed_before);
        match payload {
            [0x01, ..] | [] => return Then::Close,
            [0x03, sql @ ..] => out.extend_from_slice(answers.to_query(kind_of(sql))),
            [0x16, sql @ ..] => self.prepare(answers, sql, out),
            [0x17, a, b, c, d, ..] => self.execute(answers, u32::from_le_bytes([*a, *b, *c, *d]), out),
            // Closing a statement, and its long data, are not answered.
            [0x19 | 0x18, ..] => {}
            // Initial schema, ping, reset of a statement, set option, reset of the connection.
            [0x02 | 0x0e | 0x1a | 0x1b | 0x1f, ..] => packet(out, 1, OK),
            _ => packet(out, 1, b"\xff\x17\x04#08S01The null server does not know this command"),
        }
        Then::GoOn
    }

    fn prepare(&mut self, answers: &Answers, sql: &[u8], out: &mut Vec<u8>) {
        self.statements.push(kind_of(sql));
        answers.prepared(out, self.statements.len() as u32, sql);
    }

    fn execute(&self, answers: &Answers, statement_id: u32, out: &mut Vec<u8>) {
        match self.statements.get((statement_id as usize).wrapping_sub(1)) {
            Some(kind) => out.extend_from_slice(answers.to_execution(*kind)),
            None => packet(out, 1, b"\xff\xdb\x04#HY000The null server has not prepared this statement"),
        }
    }
}
