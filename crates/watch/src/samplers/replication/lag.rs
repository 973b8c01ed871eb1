//! How far a replica is behind, asked for by itself.

use mysql_async::{Conn, Error};

use super::channel::SECONDS_BEHIND;
use super::questions::Questions;
use crate::own_statements::ControlConnection;

/// Asks one server again and again. It remembers which form of the question the server understands.
#[derive(Debug, Default)]
pub struct LagQuestion {
    questions: Questions,
}

/// What a server says of its sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lag {
    /// It is no replica, or does not say.
    None,
    /// It has a source and does not say how far behind it is: replication stands still.
    Stopped,
    /// Of several sources, the one that it is furthest behind.
    Seconds(f64),
}

impl LagQuestion {
    /// # Errors
    /// The connection is lost, or the server refuses for another reason than a missing privilege.
    pub async fn ask(&mut self, conn: &mut Conn) -> Result<Lag, Error> {
        let channels = self.questions.channels(&mut ControlConnection::uncounted(conn)).await?;
        let mut lag = Lag::None;
        for channel in channels {
            let behind = channel.numbers.iter().find(|(name, _)| name == SECONDS_BEHIND.name);
            lag = match (lag, behind.map(|(_, value)| value.as_f64())) {
                (Lag::Stopped, _) | (_, None) => Lag::Stopped,
                (Lag::Seconds(most), Some(behind)) => Lag::Seconds(most.max(behind)),
                (Lag::None, Some(behind)) => Lag::Seconds(behind),
            };
        }
        Ok(lag)
    }
}
