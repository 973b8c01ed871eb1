//! A program that answers clients, and asks a server behind it for each answer.
//!
//! An answer has four little-endian numbers of nanoseconds: when the request was received, when the answer was about to be sent, how long the
//! server behind was waited for, and 0.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::{now_ns, spin_ns};

const COM_QUERY: &[u8] = b"\x09\0\0\0\x03SELECT 1";
const GREETING: usize = 8;
const UPSTREAM_ANSWER: usize = 64;
const ANSWER: usize = 32;

trait Socket: Read + Write + AsRawFd {}
impl<T: Read + Write + AsRawFd> Socket for T {}

/// How clients are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Where the server behind listens: a path, or a port.
    upstream: String,
    /// Each request connects to it.
    connects: bool,
    spin_us: u64,
    /// One thread works on the requests of this many clients at a time; 0: each client has a thread.
    together: usize,
}

impl Plan {
    pub(crate) fn of(options: &[&str]) -> Plan {
        let mut plan = Plan::default();
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "upstream" => plan.upstream = value.to_string(),
                "connects" => plan.connects = true,
                "spin" => plan.spin_us = value.parse().unwrap(),
                "together" => plan.together = value.parse().unwrap(),
                _ => panic!("no option {name}"),
            }
        }
        plan
    }

    fn connect(&self) -> Box<dyn Socket> {
        let mut socket: Box<dyn Socket> = match self.upstream.parse::<u16>() {
            Ok(port) => {
                let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            }
            Err(_) => Box::new(UnixStream::connect(&self.upstream).unwrap()),
        };
        socket.read_exact(&mut [0; GREETING]).unwrap();
        socket
    }
}

/// Prints where it listens, and answers until it is ended.
pub(crate) fn serve(plan: &Plan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    println!("ready");
    let accept = || {
        let stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        stream
    };
    if plan.together > 0 {
        return serve_together(plan, (0..plan.together).map(|_| accept()).collect());
    }
    loop {
        let (plan, stream) = (plan.clone(), accept());
        std::thread::spawn(move || serve_client(&plan, stream));
    }
}

fn serve_client(plan: &Plan, mut client: TcpStream) {
    let mut kept = (!plan.connects).then(|| plan.connect());
    let mut request = [0; 1024];
    while let Ok(1..) = client.read(&mut request) {
        let received_ns = now_ns();
        spin_ns(plan.spin_us * 1000);
        let asked_ns = now_ns();
        let mut fresh = None;
        let upstream = kept.as_mut().unwrap_or_else(|| fresh.insert(plan.connect()));
        upstream.write_all(COM_QUERY).unwrap();
        upstream.read_exact(&mut [0; UPSTREAM_ANSWER]).unwrap();
        let waited_ns = now_ns() - asked_ns;
        answer(&mut client, received_ns, waited_ns);
    }
}

fn answer(client: &mut TcpStream, received_ns: u64, waited_ns: u64) {
    let numbers = [received_ns, now_ns(), waited_ns, 0];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(bytes.len(), ANSWER);
    client.write_all(&bytes).unwrap();
}

/// One thread waits for any client and any answer of the server behind. Each client has a connection to that.
fn serve_together(plan: &Plan, mut clients: Vec<TcpStream>) {
    let mut upstreams: Vec<Box<dyn Socket>> = clients.iter().map(|_| plan.connect()).collect();
    let mut asked: Vec<VecDeque<(u64, u64)>> = vec![VecDeque::new(); clients.len()];
    let mut request = [0; 1024];
    loop {
        let of = |socket: i32| libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
        let sockets = clients.iter().map(AsRawFd::as_raw_fd);
        let mut ready: Vec<libc::pollfd> =
            sockets.chain(upstreams.iter().map(|upstream| upstream.as_raw_fd())).map(of).collect();
        // An event loop waits for many at once, so that the call does not show for whom.
        wait_for_any(&mut ready);
        for place in 0..clients.len() {
            if ready[clients.len() + place].revents != 0 {
                upstreams[place].read_exact(&mut [0; UPSTREAM_ANSWER]).unwrap();
                let (received_ns, asked_ns) = asked[place].pop_front().unwrap();
                answer(&mut clients[place], received_ns, now_ns() - asked_ns);
            }
            if ready[place].revents != 0 {
                let Ok(1..) = clients[place].read(&mut request) else { return };
                let received_ns = now_ns();
                spin_ns(plan.spin_us * 1000);
                asked[place].push_back((received_ns, now_ns()));
                upstreams[place].write_all(COM_QUERY).unwrap();
            }
        }
    }
}

/// As `epoll_wait` does: with a descriptor that names none of the sockets.
fn wait_for_any(ready: &mut [libc::pollfd]) {
    // SAFETY: the descriptor is closed below, and the events live through the calls.
    unsafe {
        let epoll = libc::epoll_create1(0);
        for (place, socket) in ready.iter().enumerate() {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: place as u64 };
            assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket.fd, &raw mut event), 0);
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = libc::epoll_wait(epoll, events.as_mut_ptr(), 64, -1);
        for event in events.iter().take(count.max(0) as usize) {
            let place = event.u64 as usize;
            ready[place].revents = libc::POLLIN;
        }
        libc::close(epoll);
    }
}
