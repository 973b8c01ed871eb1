//! Threads that pause: each waits in one way, and prints its number and what it waits in.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::jobs::wait_for_byte;
use crate::spin_ns;

const PAUSE: Duration = Duration::from_millis(400);
const WORK: Duration = Duration::from_millis(30);
const STALL: Duration = Duration::from_millis(50);
const STALL_EVERY: Duration = Duration::from_millis(500);
const SHORT: Duration = Duration::from_millis(5);

/// Lengths of no pattern, in milliseconds.
const IRREGULAR_MS: [u64; 10] = [25, 310, 90, 40, 520, 30, 150, 380, 60, 230];

/// Starts all of them, and never ends.
pub(crate) fn all() {
    let (sender, mut receiver) = UnixStream::pair().unwrap();
    let (asker, mut server) = UnixStream::pair().unwrap();
    let mut irregular = IRREGULAR_MS.iter().cycle();
    let threads = vec![
        pausing("receive", move || {
            receiver.read_exact(&mut [0]).unwrap();
            // An answer: what it waits for next is another request.
            receiver.write_all(b"y").unwrap();
        }),
        pausing("serve", move || {
            server.read_exact(&mut [0]).unwrap();
            std::thread::sleep(WORK);
            server.write_all(b"y").unwrap();
        }),
        pausing("poll", || {
            // SAFETY: no descriptors are passed.
            unsafe { libc::poll(std::ptr::null_mut(), 0, PAUSE.as_millis() as i32) };
        }),
        pausing("stall", || {
            let begun = std::time::Instant::now();
            std::thread::sleep(STALL);
            while begun.elapsed() < STALL_EVERY - SHORT {
                std::thread::sleep(SHORT);
            }
            std::thread::sleep(STALL_EVERY.saturating_sub(begun.elapsed()));
        }),
        pausing("irregular", move || {
            std::thread::sleep(Duration::from_millis(*irregular.next().unwrap()));
        }),
        pausing("short", || std::thread::sleep(SHORT)),
        pausing("sender", move || {
            std::thread::sleep(PAUSE);
            (&sender).write_all(b"x").unwrap();
            (&asker).write_all(b"x").unwrap();
        }),
    ];
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Pauses and works, again and again, once the process has received its byte.
fn pausing(name: &'static str, mut pause: impl FnMut() + Send + 'static) -> std::thread::JoinHandle<()> {
    let work = move || {
        // SAFETY: a plain system call.
        println!("job {name} {}", unsafe { libc::gettid() });
        wait_for_byte();
        loop {
            pause();
            spin_ns(500_000);
        }
    };
    std::thread::Builder::new().name(format!("pauses-{name}")).spawn(work).unwrap()
}
