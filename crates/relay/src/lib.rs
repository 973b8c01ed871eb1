//! Passes what is recorded on to others during a recording. The latest value of each series is available as OpenMetrics text over
//! HTTP, and each sample is sent by Graphite's plain protocol.
//!
//! It takes samples where they are recorded, and never holds the recording up. For HTTP it keeps the latest values, for Graphite
//! a queue with a bound. Samples that do not fit are counted and reported. It reads no recording and asks no server.
//!
//! ```no_run
//! use std::sync::Arc;
//! use whyso_record::{Options, Recorder};
//! use whyso_relay::{Relay, RelayTargets};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = Recorder::create("runs/example".as_ref(), Options::default())?;
//! let targets = RelayTargets { openmetrics: Some("127.0.0.1:9104".to_string()), ..RelayTargets::default() };
//! let relay = Relay::start(&targets)?;
//! recorder.tap(relay.tap());
//! // … the recording continues …
//! for line in relay.finish() {
//!     println!("{line}");
//! }
//! # Ok(())
//! # }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod graphite;
mod http;
mod latest;
mod openmetrics;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use whyso_record::Tap;
use whyso_record::data::{LoadInterval, Reading, SeriesId, SeriesKey};

use graphite::Graphite;
use http::Endpoint;
use latest::Latest;

/// Where samples are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayTargets {
    /// Address to listen at, such as "127.0.0.1:9104".
    pub openmetrics: Option<String>,
    /// Receiver of Graphite's plain protocol, HOST:PORT.
    pub graphite: Option<String>,
    /// Before each of Graphite's paths; mostly "whyso".
    pub graphite_prefix: String,
}

impl RelayTargets {
    /// Returns a warning about the address. `None`: only this machine can reach it.
    pub fn warning(&self) -> Option<String> {
        let address = self.openmetrics.as_ref()?;
        let is_here = |mut all: std::vec::IntoIter<SocketAddr>| all.all(|address| address.ip().is_loopback());
        // What can't be resolved is refused when it is listened at.
        (!address.to_socket_addrs().is_ok_and(is_here)).then(|| {
            format!(
                "--openmetrics {address}: anyone who can reach this address can read what is recorded; \
                 127.0.0.1 in its place keeps it here"
            )
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "--openmetrics {address}: {cause}; give the address and port to listen at, such as 127.0.0.1:9104"
    )]
    Listen { address: String, cause: std::io::Error },
    #[error("--graphite {0:?} names no receiver: give HOST:PORT, such as localhost:2003")]
    Receiver(String),
    #[error("--graphite-prefix {0:?} can't be in a path: give letters, digits, -, _ and dots")]
    Prefix(String),
    #[error(
        "no thread can be started for samples that go to others: {0}; raise the limit of threads (ulimit -u)"
    )]
    Thread(std::io::Error),
}

/// Passes samples on, until it is finished.
pub struct Relay {
    tap: Arc<RelayTap>,
    endpoint: Option<Endpoint>,
}

/// Receives the recorder's samples.
struct RelayTap {
    latest: Arc<Latest>,
    graphite: Option<Graphite>,
}

impl Relay {
    /// # Errors
    /// The address is not available, or a value of `targets` is not valid. A receiver that does not answer is no error.
    pub fn start(targets: &RelayTargets) -> Result<Relay, Error> {
        let latest = Arc::new(Latest::default());
        let graphite = match &targets.graphite {
            Some(receiver) => Some(Graphite::start(receiver, &targets.graphite_prefix, latest.clone())?),
            None => None,
        };
        let endpoint = match &targets.openmetrics {
            Some(address) => Some(Endpoint::start(address, latest.clone())?),
            None => None,
        };
        Ok(Relay { tap: Arc::new(RelayTap { latest, graphite }), endpoint })
    }

    pub fn tap(&self) -> Arc<dyn Tap> {
        self.tap.clone()
    }

    /// Where metrics can be fetched; the port is the system's choice where 0 was asked for.
    pub fn address(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(|endpoint| endpoint.address)
    }

    /// Ends the relay within two seconds. Returns what did not arrive, as text.
    pub fn finish(self) -> Vec<String> {
        drop(self.endpoint);
        self.tap.graphite.as_ref().and_then(Graphite::finish).into_iter().collect()
    }
}

impl Tap for RelayTap {
    fn series(&self, id: SeriesId, key: &SeriesKey) {
        self.latest.series(id, key);
    }

    fn reading(&self, reading: &Reading) {
        self.latest.reading(reading);
        if let Some(graphite) = &self.graphite {
            graphite.reading(reading);
        }
    }

    fn load(&self, interval: &LoadInterval) {
        let sums = self.latest.load(interval);
        if let Some(graphite) = &self.graphite {
            graphite.load(interval, sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_warned_of() {
        let warning = |address: &str| {
            RelayTargets { openmetrics: Some(address.to_string()), ..RelayTargets::default() }.warning()
        };
        for here in ["127.0.0.1:9104", "[::1]:9104", "127.9.9.9:1"] {
            assert_eq!(warning(here), None, "{here}");
        }
        for open in ["0.0.0.0:9104", "[::]:9104", "192.0.2.1:9104"] {
            assert!(warning(open).unwrap().contains("127.0.0.1 in its place"), "{open}");
        }
        assert_eq!(RelayTargets::default().warning(), None);
    }
}
