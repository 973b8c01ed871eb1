//! How many of the local ports are in use to each destination. A port can be used again for another one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use super::{PORTS, failure};
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;
use crate::sock_diag;
use crate::text::KernelFile;

/// Below this share of the range that all sockets together could use, no list is read.
const ALL_MIN: f64 = 0.25;
/// Destinations with a smaller share of the range are left out.
const SHARE_MIN: f64 = 0.05;
const DESTINATIONS_MAX: usize = 8;
const SOCKETS_MAX: usize = 200_000;
/// Of `include/net/tcp_states.h`: whatever has a port and a destination.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | TIME_WAIT_BIT | 1 << 8 | 1 << 9 | 1 << 11;
const TIME_WAIT: u8 = 6;
const TIME_WAIT_BIT: u32 = 1 << TIME_WAIT;

pub(super) struct Ports {
    range: KernelFile,
    sockstat: KernelFile,
}

impl Ports {
    pub(super) fn new() -> Ports {
        Ports {
            range: KernelFile::new("/proc/sys/net/ipv4/ip_local_port_range"),
            sockstat: KernelFile::new("/proc/net/sockstat"),
        }
    }
}

impl Sampler for Ports {
    fn source(&self) -> &'static str {
        "ports"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let range = match self.range.read() {
            Ok(text) => parse_range(&text),
            Err(error) => return Err(Failure::Absent(self.range.failure(&error))),
        };
        let Some(range) = range else {
            return Err(Failure::Absent("net.ipv4.ip_local_port_range is not readable".to_string()));
        };
        let sockets = match self.sockstat.read() {
            Ok(text) => parse_sockstat(&text),
            Err(error) => return Err(Failure::Absent(self.sockstat.failure(&error))),
        };
        let size = u64::from(range.end() - range.start()) + 1;
        batch.put(&PORTS[0], "", size);
        batch.put(&PORTS[1], "", sockets.time_wait);
        if ((sockets.in_use + sockets.time_wait) as f64) < ALL_MIN * size as f64 {
            return Ok(());
        }
        let mut destinations = Destinations::new(range);
        for family in [libc::AF_INET, libc::AF_INET6] {
            let asked = sock_diag::of_tcp(family, STATES);
            let listed = sock_diag::dump(&asked, SOCKETS_MAX, |message| destinations.add(message));
            match listed {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Failure::Absent(format!("there are more than {SOCKETS_MAX} sockets")));
                }
                // A kernel without IPv6 has none of these.
                Err(_) if family != libc::AF_INET => {}
                Err(error) => return Err(failure(&error)),
            }
        }
        for (destination, used) in destinations.largest() {
            batch.put(&PORTS[2], &destination, used.all);
            batch.put(&PORTS[3], &destination, used.time_wait);
        }
        Ok(())
    }
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut words = text.split_ascii_whitespace();
    let (first, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (first <= last).then_some(first..=last)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SocketCounts {
    in_use: u64,
    time_wait: u64,
}

/// The line "TCP: inuse 5 orphan 0 tw 12 …", and "TCP6: inuse 4".
fn parse_sockstat(text: &str) -> SocketCounts {
    let mut counts = SocketCounts::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        if name != "TCP" && name != "TCP6" {
            continue;
        }
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        for pair in words.chunks_exact(2) {
            let value = pair[1].parse().unwrap_or(0);
            match pair[0] {
                "inuse" => counts.in_use += value,
                "tw" => counts.time_wait += value,
                _ => {}
            }
        }
    }
    counts
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UsedPorts {
    all: u64,
    time_wait: u64,
}

struct Destinations {
    range: RangeInclusive<u16>,
    /// By local address and destination: each local port occurs once.
    used: HashMap<(IpAddr, SocketAddr), UsedPorts>,
}

impl Destinations {
    fn new(range: RangeInclusive<u16>) -> Destinations {
        Destinations { range, used: HashMap::new() }
    }

    /// Adds a `struct inet_diag_msg`.
    fn add(&mut self, message: &[u8]) {
        let Some(found) = parse(message).filter(|found| self.range.contains(&found.port)) else { return };
        let used = self.used.entry((found.local, found.destination)).or_default();
        used.all += 1;
        used.time_wait += u64::from(found.state == TIME_WAIT);
    }

    /// Those with the most ports, the first one first. Of several local addresses, the one with the most stands for the destination.
    fn largest(&self) -> Vec<(String, UsedPorts)> {
        let size = f64::from(self.range.end() - self.range.start()) + 1.0;
        let mut largest: HashMap<SocketAddr, UsedPorts> = HashMap::new();
        for ((_, destination), used) in &self.used {
            if used.all as f64 >= SHARE_MIN * size {
                let most = largest.entry(*destination).or_default();
                if used.all > most.all {
                    *most = *used;
                }
            }
        }
        let mut largest: Vec<(SocketAddr, UsedPorts)> = largest.into_iter().collect();
        largest.sort_by_key(|(destination, used)| (std::cmp::Reverse(used.all), *destination));
        largest.truncate(DESTINATIONS_MAX);
        largest.into_iter().map(|(destination, used)| (destination.to_string(), used)).collect()
    }
}

struct Connection {
    state: u8,
    local: IpAddr,
    port: u16,
    destination: SocketAddr,
}

fn parse(message: &[u8]) -> Option<Connection> {
    let (family, state) = (*message.first()?, *message.get(1)?);
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
        Some(match i32::from(family) {
            libc::AF_INET => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
            _ => Ipv6Addr::from(bytes).to_canonical(),
        })
    };
    Some(Connection {
        state,
        local: address(8)?,
        port: port(4)?,
        destination: SocketAddr::new(address(24)?, port(6)?),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn connections_count_at_their_destination_by_local_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let clients: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(to).unwrap()).collect();
        let accepted: Vec<TcpStream> = clients.iter().map(|_| listener.accept().unwrap().0).collect();
        let ports = clients.iter().map(|client| client.local_addr().unwrap().port());
        let mut destinations = Destinations::new(1..=u16::MAX);
        sock_diag::dump(&sock_diag::of_tcp(libc::AF_INET, STATES), SOCKETS_MAX, |message| {
            destinations.add(message);
        })
        .unwrap();
        let used = destinations.used[&(to.ip(), to)];
        assert_eq!((used.all, used.time_wait), (5, 0));
        // The server's side has one port for all.
        for port in ports {
            let of_server = destinations.used[&(to.ip(), SocketAddr::new(to.ip(), port))];
            assert_eq!(of_server.all, 1);
        }
        // Who closes first keeps the port.
        drop(clients);
        drop(accepted);
        let mut later = Destinations::new(1..=u16::MAX);
        sock_diag::dump(&sock_diag::of_tcp(libc::AF_INET, TIME_WAIT_BIT), SOCKETS_MAX, |message| {
            later.add(message);
        })
        .unwrap();
        assert_eq!(later.used[&(to.ip(), to)], UsedPorts { all: 5, time_wait: 5 });
    }

    #[test]
    fn range_and_numbers_of_sockets_are_read() {
        assert_eq!(parse_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(parse_range("9 3"), None);
        let text =
            "sockets: used 9\nTCP: inuse 5 orphan 0 tw 12 alloc 6 mem 1\nTCP6: inuse 4\nUDP: inuse 1 mem 0\n";
        assert_eq!(parse_sockstat(text), SocketCounts { in_use: 9, time_wait: 12 });
    }

    #[test]
    fn a_destination_needs_a_share_of_the_range() {
        let mut destinations = Destinations::new(1..=100);
        let to = |port: u16| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        destinations.used.insert((to(0).ip(), to(80)), UsedPorts { all: 4, time_wait: 4 });
        destinations.used.insert((to(0).ip(), to(3306)), UsedPorts { all: 98, time_wait: 97 });
        let found = destinations.largest();
        assert_eq!(found, [("127.0.0.1:3306".to_string(), UsedPorts { all: 98, time_wait: 97 })]);
    }

    proptest! {
        #[test]
        fn any_message_and_text_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..80), text in ".{0,60}") {
            Destinations::new(0..=u16::MAX).add(&bytes);
            parse_range(&text);
            parse_sockstat(&text);
        }
    }
}
