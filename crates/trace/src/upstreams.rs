//! The servers behind a program, as the programs in the kernel count them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use libbpf_rs::{MapCore, MapFlags};

use crate::reading::UpstreamSums;

/// Keys from here on are places in the kernel's memory: of sockets in the file system.
const PLACES_FROM: u64 = 1 << 63;
/// In other keys: the address is one of IPv6, and stands where paths do.
const IN_IPV6: u64 = 1 << 48;
/// Where `struct upstream` of `bpf/upstream.h` has the path.
const PATH_AT: usize = 24;
/// The same of the connections that failed without a port.
const WITHOUT_PORT_AT: usize = 132;

/// Reads all of them. Servers at the same port or path are one.
pub(crate) fn upstreams(map: &impl MapCore) -> Vec<UpstreamSums> {
    let mut all: Vec<UpstreamSums> = Vec::new();
    for key in map.keys() {
        let Ok(Some(value)) = map.lookup(&key, MapFlags::ANY) else { continue };
        let Some(sums) = parse(&key, &value) else { continue };
        match all.iter_mut().find(|known| known.address == sums.address) {
            Some(known) => {
                known.asked += sums.asked;
                known.wait_ns += sums.wait_ns;
                known.late_ns += sums.late_ns;
                known.without_port += sums.without_port;
            }
            None => all.push(sums),
        }
    }
    all.sort_by(|a, b| a.address.cmp(&b.address));
    all
}

fn parse(key: &[u8], value: &[u8]) -> Option<UpstreamSums> {
    let long = |bytes: &[u8], at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let key = long(key, 0)?;
    Some(UpstreamSums {
        address: address(key, value.get(PATH_AT..WITHOUT_PORT_AT)?),
        asked: long(value, 0)?,
        wait_ns: long(value, 8)?,
        late_ns: long(value, 16)?,
        without_port: u32::from_ne_bytes(value.get(WITHOUT_PORT_AT..WITHOUT_PORT_AT + 4)?.try_into().ok()?)
            .into(),
    })
}

/// `key`: a place, or a port above a sum of an address.
fn address(key: u64, path: &[u8]) -> String {
    if key >= PLACES_FROM {
        let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
        return format!("unix {}", String::from_utf8_lossy(&path[..end]));
    }
    let host = match (key & IN_IPV6 != 0, path.first_chunk::<16>()) {
        (true, Some(bytes)) => IpAddr::V6(Ipv6Addr::from(*bytes)),
        _ => IpAddr::V4(Ipv4Addr::from((key as u32).to_ne_bytes())),
    };
    tcp_address(SocketAddr::new(host, (key >> 32) as u16))
}

/// Returns a TCP address as a listener's is written where it is one of this machine's: "tcp 3306"; else with its host.
pub fn tcp_address(address: SocketAddr) -> String {
    // Only an own address can be bound.
    let is_here = address.ip().is_loopback() || UdpSocket::bind((address.ip(), 0)).is_ok();
    if is_here { format!("tcp {}", address.port()) } else { format!("tcp {address}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_port_or_by_its_path() {
        let key = |port: u64, host: [u8; 4]| port << 32 | u64::from(u32::from_ne_bytes(host));
        assert_eq!(address(key(3306, [127, 0, 0, 1]), &[]), "tcp 3306");
        // No machine has an address that is kept for documentation.
        assert_eq!(address(key(3306, [192, 0, 2, 7]), &[]), "tcp 192.0.2.7:3306");
        let in_ipv6 = |port: u64, host: Ipv6Addr| {
            address(IN_IPV6 | port << 32 | 1, &[&host.octets()[..], &[0; 92]].concat())
        };
        assert_eq!(in_ipv6(11211, Ipv6Addr::LOCALHOST), "tcp 11211");
        assert_eq!(in_ipv6(65535, "2001:db8::1".parse().unwrap()), "tcp [2001:db8::1]:65535");
        assert_eq!(address(0xffff_8881_0000_1000, b"/run/php/fpm.sock\0\0"), "unix /run/php/fpm.sock");
        assert_eq!(parse(&[0; 8], &[0; 23]), None);
        let value = [&[0; WITHOUT_PORT_AT][..], &9_u32.to_ne_bytes()].concat();
        assert_eq!(parse(&[0; 8], &value).unwrap().without_port, 9);
    }
}
