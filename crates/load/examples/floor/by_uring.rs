//! Over io_uring: sends and receives are handed over together, by the same system call that waits for answers.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};

use crate::peer::Peer;
use crate::{Exchange, WAIT_MAX};

const ENTRIES_MAX: usize = 4096;
/// User data of a send, which completes unseen unless it fails; a receive's is the connection's place.
const SEND: u64 = u64::MAX;

/// The number of answers until the deadline.
pub(crate) fn run(exchange: Exchange) -> io::Result<u64> {
    let Exchange { peers, deadline } = exchange;
    let entries = (peers.len() * 2).next_power_of_two().clamp(8, ENTRIES_MAX) as u32;
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(entries * 2)
        .build(entries)?;
    let sockets: Vec<i32> = peers.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&sockets)?;
    let mut received: Vec<Vec<u8>> = peers.iter().map(|peer| vec![0; peer.answer_bytes]).collect();
    let mut missing: Vec<usize> = peers.iter().map(|peer| peer.answer_bytes).collect();
    for (place, peer) in peers.iter().enumerate() {
        push(&mut ring, send(place, peer))?;
        push(&mut ring, receive(place, &mut received[place]))?;
    }
    let timeout = types::Timespec::from(WAIT_MAX);
    let until = types::SubmitArgs::new().timespec(&timeout);
    let mut done = Vec::with_capacity(entries as usize * 2);
    let mut answers = 0;
    let outcome = loop {
        if Instant::now() >= deadline {
            break Ok(answers);
        }
        match ring.submitter().submit_with_args(1, &until) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                break Err(error);
            }
            _ => {}
        }
        done.clear();
        done.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
        if let Some((_, error)) = done.iter().find(|(_, result)| *result < 0) {
            break Err(io::Error::from_raw_os_error(-error));
        }
        if let Err(error) = go_on(&mut ring, &peers, &done, &mut received, &mut missing, &mut answers) {
            break Err(error);
        }
    };
    // A closed ring's receives are cancelled by and by, and until then the kernel may write: the buffers stay, which
    // costs nothing where the process is about to end.
    std::mem::forget((received, peers));
    outcome
}

fn go_on(
    ring: &mut IoUring,
    peers: &[Peer],
    done: &[(u64, i32)],
    received: &mut [Vec<u8>],
    missing: &mut [usize],
    answers: &mut u64,
) -> io::Result<()> {
    for (data, result) in done {
        if *data == SEND {
            continue;
        }
        let (place, count) = (*data as usize, *result as usize);
        if count == 0 || count > missing[place] {
            return Err(crate::wrong_length());
        }
        missing[place] -= count;
        if missing[place] == 0 {
            *answers += 1;
            missing[place] = peers[place].answer_bytes;
            push(ring, send(place, &peers[place]))?;
        }
        push(ring, receive(place, &mut received[place]))?;
    }
    Ok(())
}

fn send(place: usize, peer: &Peer) -> Entry {
    let (bytes, length) = (peer.request.as_ptr(), peer.request.len() as u32);
    let entry =
        opcode::Send::new(types::Fixed(place as u32), bytes, length).flags(libc::MSG_NOSIGNAL).build();
    entry.flags(Flags::SKIP_SUCCESS).user_data(SEND)
}

fn receive(place: usize, buffer: &mut [u8]) -> Entry {
    let entry =
        opcode::Recv::new(types::Fixed(place as u32), buffer.as_mut_ptr(), buffer.len() as u32).build();
    entry.user_data(place as u64)
}

fn push(ring: &mut IoUring, entry: Entry) -> io::Result<()> {
    // SAFETY: requests and buffers are on the heap, unmoved, and never freed.
    while unsafe { ring.submission().push(&entry) }.is_err() {
        ring.submit()?;
    }
    Ok(())
}
