//! A client that runs out of local ports, in a network namespace that has few.

mod support;

use std::io;
use std::time::{Duration, Instant};

use support::engines::{LIMITS, engines, open, spec, stop, wait_until};
use support::peer::{Peer, Then, rows, send, server};
use whyso_load::{EngineKind, LevelOutcome, LevelSpec, Limits, LoadSpec};

const PORTS: &str = "50000 50031";

/// Gives the calling thread, and those that it starts, a network of their own with a loopback device that is up.
fn enter_a_network_of_its_own() -> io::Result<()> {
    let check = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: these calls touch nothing but the kernel's own; `request` is a valid ifreq that outlives them.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNET))?;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(socket)?;
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let set = check(libc::ioctl(socket, libc::SIOCSIFFLAGS, &request));
        libc::close(socket);
        set?;
    }
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", PORTS)?;
    // Otherwise the kernel uses ports on the loopback device again after a second.
    std::fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "0")
}

/// A level that makes a connection for every transaction; it has many more to make than there are ports.
fn connection_storm(engine: EngineKind) -> LevelOutcome {
    let peer = Peer::start(|stream| {
        server(stream, |stream, _| {
            send(stream, &rows());
            Then::GoOn
        });
    });
    let limits = Limits { reconnect: Duration::from_millis(500), ..LIMITS };
    let mut load = open(&LoadSpec { limits, ..spec(peer.on_tcp(), engine, 2) }).unwrap();
    let level = LevelSpec { reconnect_every: Some(1), ..LevelSpec::users(2) };
    let mut running = load.level_with(&level).unwrap();
    running.begin_measuring();
    let began = Instant::now();
    wait_until(&running, "time", |_| began.elapsed() > Duration::from_secs(1));
    stop(running)
}

#[test]
fn running_out_of_local_ports_is_reported_as_the_client_s_limit_with_its_ceiling() {
    for engine in engines() {
        let storm = move || enter_a_network_of_its_own().map(|()| connection_storm(engine));
        let outcome = match std::thread::spawn(storm).join().unwrap() {
            Ok(outcome) => outcome,
            Err(error) => {
                return whyso_testing::not_tested(format!("a network of its own takes root: {error}"));
            }
        };
        let limit = outcome.client_limit.unwrap_or_else(|| panic!("{engine}: {:?}", outcome.failure));
        assert!(limit.contains("ran out of local ports: 32 ports (50000 to 50031)"), "{engine}: {limit}");
        // A port is free at once where the server happens to close first; most are not.
        assert!(outcome.transactions < 1000, "{engine}: {}", outcome.transactions);
    }
}
