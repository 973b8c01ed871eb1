//! A session over HTTP: answers to pages, and whether the connection carries further requests.

use whyso_http::{AnswerError, AnswerScanner};
use whyso_wire::{Capabilities, ProtocolError};

use crate::connection::exchange_error::ExchangeError;
use crate::connection::login::LoggedIn;
use crate::connection::session::{Got, Session};
use crate::connection::stream::Stream;
use crate::driver::Expects;

/// Reads of what arrived on a connection while nothing was due on it.
const QUIET_READS_MAX: u32 = 16;

impl Session {
    /// A session over HTTP. A longer body than `body_bytes_max` is an error.
    pub(crate) fn over_http(stream: Stream, endpoint: u16, body_bytes_max: u64) -> Session {
        let agreed = Capabilities { deprecate_eof: true, cache_metadata: false };
        let session = Session::new(LoggedIn { stream, agreed, is_compressed: false }, endpoint);
        Session { page: Some(Box::new(AnswerScanner::new(body_bytes_max))), ..session }
    }

    #[inline]
    pub(super) fn feed_page(&mut self, bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        let Some(page) = &mut self.page else { return Err(ProtocolError::AfterEnd.into()) };
        let fed = page.feed(bytes)?;
        if !fed.is_complete {
            return Ok(None);
        }
        if fed.consumed < bytes.len() {
            return Err(AnswerError::AfterEnd.into());
        }
        self.page_is_complete();
        Ok(Some(Got::Page))
    }

    fn page_is_complete(&mut self) {
        self.expects = Expects::Nothing;
        self.is_used_up |= self.page.as_ref().is_some_and(|page| page.closes());
    }

    /// The connection has ended. Returns the answer, if that is how it ends.
    pub(crate) fn end_of_stream(&mut self) -> Option<Got> {
        let Expects::Page { .. } = self.expects else { return None };
        self.page.as_mut()?.end_of_stream().ok()?;
        self.page_is_complete();
        Some(Got::Page)
    }

    /// The answer over HTTP that was read last.
    pub(crate) fn page(&self) -> Option<&AnswerScanner> {
        self.page.as_deref()
    }

    /// Whether another connection is needed for the next request over HTTP.
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_used_up
    }

    /// Takes bytes that arrived while nothing was due. Returns whether they are only the TLS session's own, such as its tickets.
    pub(crate) fn is_quiet(&mut self, bytes: &[u8]) -> bool {
        let Some(layers) = self.layers.as_mut().filter(|_| self.page.is_some()) else { return false };
        self.plain.clear();
        layers.unwrap(bytes, &mut self.plain).is_ok() && self.plain.is_empty()
    }

    /// Why it can't be used although nothing is due on it.
    pub(crate) fn unrest(&mut self) -> Option<ExchangeError> {
        for _ in 0..QUIET_READS_MAX {
            let unrest = self.socket.unrest();
            if !matches!(unrest, Some(ExchangeError::Protocol(_))) {
                return unrest;
            }
            let mut bytes = [0; 1024];
            match self.socket.try_receive(&mut bytes) {
                Ok(count) if count > 0 && self.is_quiet(&bytes[..count]) => {}
                _ => return unrest,
            }
        }
        Some(ProtocolError::AfterEnd.into())
    }
}
