//! A server that spends a known time in each request, and measures by its own clocks what it spent.
//!
//! ```text
//! planted_server (--unix PATH | --tcp ADDRESS:PORT) [--sleep-us N] [--lock-us N] [--sync-kib N] [--spin-us N]
//!                [--user-us N] [--kernel-us N]
//! ```
//!
//! It speaks the protocol as the null server does (crates/load/examples/null_server), with one thread per connection. Each query and
//! each execution has these parts:
//!
//! - It sleeps.
//! - It waits for a condition that another thread makes true.
//! - It writes a file and syncs it.
//! - It spins on an atomic that another thread sets.
//! - It computes in user space and in the kernel.
//!
//! It prints where it listens, then `ready`, and runs until its standard input ends. Then it prints what it spent: `requests N`, then
//! one line `NAME NANOSECONDS` per part. What the sends of the answers spent (`send-cpu`, `send-ready`, `send-elapsed`) is in no other
//! part: an answer arrives somewhere within its send.

#[path = "../../../load/examples/null_server/answers.rs"]
mod answers;
mod parts;
#[path = "../../../load/examples/null_server/session.rs"]
mod session;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use answers::{AnswerCatalogue, greeting};
use parts::{Parts, Plan, Spent};
use session::{Session, Then};

const RECEIVE_BYTES: usize = 64 * 1024;
const COM_QUERY: u8 = 3;
const COM_STMT_EXECUTE: u8 = 0x17;
const COMMAND_PLACE: usize = 4;

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

trait Socket: Read + Write + Send {}
impl Socket for UnixStream {}
impl Socket for TcpStream {}

impl Listener {
    fn accept(&self) -> io::Result<Box<dyn Socket>> {
        Ok(match self {
            Listener::Unix(listener) => Box::new(listener.accept()?.0),
            Listener::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (listener, plan) = match parse(&arguments) {
        Ok(parsed) => parsed,
        Err(message) => {
            eprintln!("planted_server: {message}");
            return ExitCode::from(2);
        }
    };
    if let Listener::Tcp(listener) = &listener {
        let address =
            listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string());
        println!("listening on tcp:{address}");
    }
    println!("ready");
    let all = Arc::new(Mutex::new(Spent::default()));
    let spent = all.clone();
    std::thread::spawn(move || accept_all(&listener, plan, &spent));
    // Ends with the process that started it.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    print!("{}", all.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    ExitCode::SUCCESS
}

fn parse(arguments: &[String]) -> Result<(Listener, Plan), String> {
    let (mut listener, mut plan) = (None, Plan::default());
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let wrong = |why: String| format!("{name} can't be '{value}': {why}");
        let number = || value.parse::<u64>().map_err(|error| wrong(error.to_string()));
        match name.as_str() {
            "--unix" => {
                listener = Some(Listener::Unix(
                    UnixListener::bind(value).map_err(|error| wrong(error.to_string()))?,
                ));
            }
            "--tcp" => {
                listener =
                    Some(Listener::Tcp(TcpListener::bind(value).map_err(|error| wrong(error.to_string()))?));
            }
            "--sleep-us" => plan.sleep_us = number()?,
            "--lock-us" => plan.lock_us = number()?,
            "--sync-kib" => plan.sync_kib = number()?,
            "--spin-us" => plan.spin_us = number()?,
            "--user-us" => plan.user_us = number()?,
            "--kernel-us" => plan.kernel_us = number()?,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    let listener = listener.ok_or("nowhere to listen: give --unix PATH or --tcp ADDRESS:PORT")?;
    Ok((listener, plan))
}

fn accept_all(listener: &Listener, plan: Plan, spent: &Arc<Mutex<Spent>>) {
    let canned = Arc::new(AnswerCatalogue::new());
    loop {
        let socket = match listener.accept() {
            Ok(socket) => socket,
            Err(error) => {
                eprintln!("planted_server: no connection can be accepted: {error}");
                return;
            }
        };
        let (canned, spent) = (canned.clone(), spent.clone());
        let serve = move || {
            if let Err(error) = serve(socket, plan, &canned, &spent) {
                eprintln!("planted_server: a connection ended: {error}");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("one_connection".to_string()).spawn(serve) {
            eprintln!("planted_server: no thread for a connection: {error}");
        }
    }
}

fn serve(
    mut socket: Box<dyn Socket>,
    plan: Plan,
    canned: &AnswerCatalogue,
    spent: &Mutex<Spent>,
) -> io::Result<()> {
    let mut parts = Parts::new(plan)?;
    let mut session = Session::default();
    let mut received = vec![0; RECEIVE_BYTES];
    let mut out = Vec::new();
    let mut logged_in = false;
    socket.write_all(&greeting())?;
    loop {
        let count = socket.read(&mut received)?;
        let begun = parts.now()?;
        out.clear();
        let then = session.receive(canned, &received[..count], &mut out);
        if count == 0 || then == Then::Close {
            return Ok(());
        }
        let asks = matches!(received[..count].get(COMMAND_PLACE), Some(&(COM_QUERY | COM_STMT_EXECUTE)));
        if out.is_empty() {
            continue;
        }
        if !(logged_in && asks) {
            logged_in = true;
            socket.write_all(&out)?;
            continue;
        }
        let (request, ended) = parts.spend(begun)?;
        let all = || spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Before the answer: its receiver may read the sums.
        all().add(&request);
        socket.write_all(&out)?;
        let sent = parts.now()?;
        all().add_send(&ended, &sent);
    }
}
