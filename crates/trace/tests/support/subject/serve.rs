//! A server whose requests take a known time: a packet of a MySQL client in, a packet with its own times out.
//!
//! Answers end with when the request was received and when the last part was about to be sent: two little-endian
//! numbers of `CLOCK_MONOTONIC`. Filler stands before them.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::{now_ns, spin_ns};

const HEADER: usize = 4;
/// A server speaks first.
const GREETING: &[u8] = b"greeting";
const COM_QUIT: u8 = 1;
const COM_STMT_CLOSE: u8 = 0x19;

/// A tracer that begins then has the least room.
const FEW_FILES: u64 = 1_000;

/// How requests are served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    unix: Option<String>,
    /// Headers and payloads are received apart.
    apart: bool,
    /// Tries to receive again and again, without waiting in the kernel.
    eager: bool,
    /// Sends an answer.
    parts: usize,
    answer_bytes: usize,
    sleep_us: u64,
    /// Waits on a condition for this long in each request.
    wait_us: u64,
    /// Waits until the socket takes more of an answer, as servers do: in poll.
    polls: bool,
    /// Threads whose client has gone wait on a condition for the next one, and never get it.
    stays: bool,
    spin_us: u64,
    /// One thread serves this many connections; 0: each has a thread of its own.
    together: usize,
    /// It receives a request of each of them, and another thread answers them all.
    later: bool,
}

impl Plan {
    pub(crate) fn of(options: &[&str]) -> Plan {
        let mut plan = Plan { parts: 1, answer_bytes: 64, ..Plan::default() };
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "unix" => plan.unix = Some(value.to_string()),
                "tcp" => plan.unix = None,
                "apart" => plan.apart = true,
                "eager" => plan.eager = true,
                "parts" => plan.parts = value.parse().unwrap(),
                "bytes" => plan.answer_bytes = value.parse().unwrap(),
                "sleep" => plan.sleep_us = value.parse().unwrap(),
                "wait" => plan.wait_us = value.parse().unwrap(),
                "polls" => plan.polls = true,
                "stays" => plan.stays = true,
                "spin" => plan.spin_us = value.parse().unwrap(),
                "together" => plan.together = value.parse().unwrap(),
                "later" => plan.later = true,
                _ => panic!("no option {name}"),
            }
        }
        plan
    }

    /// Does what a request asks for, and answers it.
    fn answer(&self, socket: &mut dyn Socket, received_ns: u64) {
        std::thread::sleep(Duration::from_micros(self.sleep_us));
        if self.wait_us > 0 {
            wait_on_condition(Duration::from_micros(self.wait_us));
        }
        spin_ns(self.spin_us * 1000);
        let mut answer = vec![7; self.answer_bytes];
        let part = self.answer_bytes / self.parts;
        for begin in 0..self.parts - 1 {
            socket.write_all(&answer[begin * part..(begin + 1) * part]).unwrap();
        }
        // The times are in the last part, which begins behind all the others.
        let last = &mut answer[(self.parts - 1) * part..];
        let at = last.len() - 16;
        last[at..at + 8].copy_from_slice(&received_ns.to_le_bytes());
        last[at + 8..].copy_from_slice(&now_ns().to_le_bytes());
        if self.polls {
            write_polling(socket, last);
        } else {
            socket.write_all(last).unwrap();
        }
    }
}

/// On the heap, where servers keep the conditions of their locks.
fn wait_on_condition(time: Duration) {
    let condition = Box::new((Mutex::new(()), Condvar::new()));
    let end = Instant::now() + time;
    let mut held = condition.0.lock().unwrap();
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        held = condition.1.wait_timeout(held, left).unwrap().0;
    }
}

fn write_polling(socket: &mut dyn Socket, mut bytes: &[u8]) {
    socket.block(false);
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut ready = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                // SAFETY: one descriptor is passed.
                unsafe { libc::poll(&raw mut ready, 1, 60_000) };
            }
            Err(_) => return,
        }
    }
    socket.block(true);
}

trait Socket: Read + Write + AsRawFd + Send {
    fn block(&self, blocks: bool);
}

impl Socket for UnixStream {
    fn block(&self, blocks: bool) {
        self.set_nonblocking(!blocks).unwrap();
    }
}

impl Socket for TcpStream {
    fn block(&self, blocks: bool) {
        self.set_nonblocking(!blocks).unwrap();
    }
}

/// Prints where it listens, and serves until it is ended.
pub(crate) fn serve(plan: &Plan) {
    let accept: Box<dyn Fn() -> Box<dyn Socket> + Send> = match &plan.unix {
        Some(path) => {
            let listener = UnixListener::bind(path).unwrap();
            Box::new(move || Box::new(listener.accept().unwrap().0))
        }
        None => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            println!("port {}", listener.local_addr().unwrap().port());
            Box::new(move || {
                let stream = listener.accept().unwrap().0;
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            })
        }
    };
    if plan.later {
        set_files_max(FEW_FILES);
    }
    println!("ready");
    if plan.later {
        serve_later(plan, &*accept);
        return;
    }
    if plan.together > 0 {
        serve_all(plan, &*accept);
        return;
    }
    loop {
        let (plan, socket) = (plan.clone(), accept());
        std::thread::Builder::new()
            .name("one_connection".into())
            .spawn(move || {
                serve_connection(&plan, socket);
                if plan.stays {
                    loop {
                        wait_on_condition(Duration::from_secs(60));
                    }
                }
            })
            .unwrap();
    }
}

/// One thread per connection.
fn serve_connection(plan: &Plan, mut socket: Box<dyn Socket>) {
    socket.write_all(GREETING).unwrap();
    socket.block(!plan.eager);
    let mut received = Vec::new();
    while let Some(length) = receive(plan, &mut *socket, &mut received) {
        let received_ns = now_ns();
        match received[HEADER] {
            COM_QUIT => return,
            COM_STMT_CLOSE => {}
            _ => plan.answer(&mut *socket, received_ns),
        }
        // Another packet may have come with it.
        received.drain(..length);
    }
}

/// Receives until there is a whole packet, in as many pieces as the plan and the kernel make of it. Returns its length.
/// `None`: the client has gone.
fn receive(plan: &Plan, socket: &mut dyn Socket, received: &mut Vec<u8>) -> Option<usize> {
    let mut buffer = [0; 1 << 16];
    loop {
        let mut wanted = if plan.apart { HEADER } else { buffer.len() };
        if received.len() >= HEADER {
            let length = HEADER + usize::from(received[0]) + (usize::from(received[1]) << 8);
            if received.len() >= length {
                return Some(length);
            }
            wanted = length - received.len();
        }
        match socket.read(&mut buffer[..wanted]) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            Err(error) if plan.eager && error.kind() == ErrorKind::WouldBlock => {}
            _ => return None,
        }
    }
}

/// Two threads for all, more of them than it seemed that there could be: one receives all requests, then the other one answers them.
fn serve_later(plan: &Plan, accept: &dyn Fn() -> Box<dyn Socket>) {
    let first = accept();
    set_files_max(plan.together as u64 + 1_000);
    let mut sockets: Vec<Box<dyn Socket>> = vec![first];
    sockets.extend((1..plan.together).map(|_| accept()));
    for socket in &mut sockets {
        socket.write_all(GREETING).unwrap();
    }
    let (received, to_answer) = std::sync::mpsc::channel::<Vec<Box<dyn Socket>>>();
    let (answered, to_receive) = std::sync::mpsc::channel();
    let answers = plan.clone();
    std::thread::spawn(move || {
        for mut sockets in to_answer {
            sockets.iter_mut().for_each(|socket| answers.answer(&mut **socket, now_ns()));
            answered.send(sockets).unwrap();
        }
    });
    let mut packet = [0; 1 << 16];
    while sockets.iter_mut().all(|socket| matches!(socket.read(&mut packet), Ok(1..))) {
        received.send(sockets).unwrap();
        sockets = to_receive.recv().unwrap();
    }
}

/// Sets how many files and sockets this process may open, within its hard limit.
fn set_files_max(files: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written and read, and lives through the calls.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = files.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}

/// One thread for all: it waits for any connection, and serves those that are ready in turn.
fn serve_all(plan: &Plan, accept: &dyn Fn() -> Box<dyn Socket>) {
    let mut sockets: Vec<Box<dyn Socket>> = (0..plan.together).map(|_| accept()).collect();
    for socket in &mut sockets {
        socket.write_all(GREETING).unwrap();
        socket.block(false);
    }
    let mut packet = [0; 1 << 16];
    while !sockets.is_empty() {
        let mut ended = Vec::new();
        let mut ready: Vec<libc::pollfd> = sockets
            .iter()
            .map(|socket| libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: as many as the vector holds.
        unsafe { libc::poll(ready.as_mut_ptr(), ready.len() as libc::nfds_t, -1) };
        for place in 0..ready.len() {
            if ready[place].revents == 0 {
                continue;
            }
            match sockets[place].read(&mut packet) {
                Ok(1..) if packet[HEADER] == COM_QUIT => ended.push(place),
                Ok(1..) if packet[HEADER] == COM_STMT_CLOSE => {}
                Ok(1..) => plan.answer(&mut *sockets[place], now_ns()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => ended.push(place),
            }
        }
        for place in ended.into_iter().rev() {
            sockets.remove(place);
        }
    }
}
