//! Over epoll: one send and one receive an answer, one wait for as many as are ready.

use std::io;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::{Exchange, WAIT_MAX};

const EVENTS_AT_ONCE: usize = 1024;
const RECEIVE_BYTES: usize = 16 * 1024;

/// The number of answers until the deadline.
pub(crate) fn run(exchange: Exchange) -> io::Result<u64> {
    let Exchange { mut peers, deadline } = exchange;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut missing: Vec<usize> = peers.iter().map(|peer| peer.answer_bytes).collect();
    for (place, peer) in peers.iter_mut().enumerate() {
        peer.set_nonblocking()?;
        epoll::add(&set, &*peer, epoll::EventData::new_u64(place as u64), epoll::EventFlags::IN)?;
        peer.send_request()?;
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: WAIT_MAX.as_nanos() as i64 };
    let mut received = vec![0; RECEIVE_BYTES];
    let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
    let mut answers = 0;
    while Instant::now() < deadline {
        events.clear();
        epoll::wait(&set, spare_capacity(&mut events), Some(&timeout))?;
        for event in &events {
            let place = event.data.u64() as usize;
            let peer = &mut peers[place];
            let count = peer.receive(&mut received)?;
            if count == 0 || count > missing[place] {
                return Err(crate::wrong_length());
            }
            missing[place] -= count;
            if missing[place] == 0 {
                answers += 1;
                missing[place] = peer.answer_bytes;
                peer.send_request()?;
            }
        }
    }
    Ok(answers)
}
