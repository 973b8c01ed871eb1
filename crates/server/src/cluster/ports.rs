//! Ports of 127.0.0.1 that nobody uses.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::{Error, Result};

/// As many different ones as are asked for. Somebody else may take one before a server does; then that does not start, and says so.
pub(super) fn free(count: usize) -> Result<Vec<u16>> {
    let failed = |error| Error::Build(format!("no port of 127.0.0.1 is free: {error}"));
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?);
    }
    listeners.iter().map(|listener| Ok(listener.local_addr().map_err(failed)?.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_and_can_be_listened_at() {
        let mut ports = free(8).unwrap();
        for port in &ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap();
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 8);
    }
}
