//! A server that misbehaves in mid-level, in every way that a server or a network can, on every engine.

mod support;

use std::time::Duration;

use support::engines::{LIMITS, engines, open, run, spec, stop, wait_until};
use support::peer::{OK, Peer, Then, Wire, let_in, packet, read_packet, rows, send, server};
use whyso_load::{Cause, EngineKind, LevelOutcome, LevelSpec, Limits, LoadSpec, Pacing, Think};

/// What is done in place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Close,
    Reset,
    /// Nothing more is sent, and the connection stays open.
    Stall,
    Garbage,
    /// The largest packet there is, of which a part comes.
    Oversized,
    WrongSequence,
    /// The same answer twice.
    Twice,
    LocalFile,
    UnknownPacket,
}

const FAULTS: [Fault; 9] = [
    Fault::Close,
    Fault::Reset,
    Fault::Stall,
    Fault::Garbage,
    Fault::Oversized,
    Fault::WrongSequence,
    Fault::Twice,
    Fault::LocalFile,
    Fault::UnknownPacket,
];

/// Most of these end by it. A busy machine may keep a peer from its CPU for some 100 ms.
const BOUNDS: Limits = Limits {
    connect: Duration::from_secs(5),
    stall: Duration::from_millis(300),
    stop: Duration::from_millis(500),
    reconnect: Duration::ZERO,
};
/// For peers of which a login never ends.
const NO_LOGIN: Limits = Limits { connect: Duration::from_millis(300), ..BOUNDS };
/// Longer than any bound of the load.
const LONG: Duration = Duration::from_secs(4);

impl Fault {
    /// Sends the first bytes of a good answer, then goes wrong.
    fn answer(self, stream: &mut dyn Wire, good_bytes: usize) -> Then {
        let good = rows();
        send(stream, &good[..good_bytes.min(good.len())]);
        match self {
            Fault::Close => return Then::HangUp,
            Fault::Reset => {
                stream.reset();
                return Then::HangUp;
            }
            Fault::Stall => std::thread::sleep(LONG),
            Fault::Garbage => send(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            Fault::Oversized => {
                send(stream, &[0xff, 0xff, 0xff, 1]);
                send(stream, &[0; 64 * 1024]);
                std::thread::sleep(LONG);
            }
            Fault::WrongSequence => send(stream, &packet(77, OK)),
            Fault::Twice => send(stream, &[rows(), rows()].concat()),
            Fault::LocalFile => send(stream, &packet(1, b"\xfb/etc/passwd")),
            Fault::UnknownPacket => send(stream, &packet(1, &[])),
        }
        Then::GoOn
    }

    /// What a level ends with where nothing good was sent before.
    fn cause(self) -> Cause {
        match self {
            Fault::Close | Fault::Reset => Cause::ConnectionLost,
            Fault::Stall | Fault::Oversized => Cause::NoAnswer,
            _ => Cause::Protocol,
        }
    }
}

/// A level of one user whose answers have this fault; it ends by itself or after some transactions.
fn level(
    engine: EngineKind,
    over_tcp: bool,
    execute: impl Fn(&mut dyn Wire, usize) -> Then + Send + Sync + 'static,
) -> LevelOutcome {
    let peer = Peer::start(move |stream| {
        let mut executions = 0;
        server(stream, |stream, _| {
            executions += 1;
            execute(stream, executions)
        });
    });
    let target = if over_tcp { peer.on_tcp() } else { peer.on_unix() };
    let load = LoadSpec { limits: BOUNDS, ..spec(target, engine, 1) };
    run(&mut open(&load).unwrap(), &LevelSpec::users(1), 20)
}

/// After two good answers; the cause and the message with which the level fails.
fn failure(engine: EngineKind, over_tcp: bool, fault: Fault, good_bytes: usize) -> (Cause, String) {
    let outcome = level(engine, over_tcp, move |stream, executions| {
        if executions > 2 {
            return fault.answer(stream, good_bytes);
        }
        send(stream, &rows());
        Then::GoOn
    });
    let failure = outcome.failure.unwrap_or_else(|| panic!("{engine} does not fail by {fault:?}"));
    assert!(
        failure.message.contains("point_select (SELECT c FROM sbtest1 WHERE id=?)"),
        "{engine}, {fault:?}: {}",
        failure.message
    );
    (failure.cause, failure.message)
}

#[test]
fn an_answer_that_trickles_in_is_counted_as_one() {
    for engine in engines() {
        let outcome = level(engine, true, |stream, _| {
            for byte in rows() {
                send(stream, &[byte]);
            }
            Then::GoOn
        });
        assert_eq!(outcome.failure, None, "{engine}");
        let select = &outcome.kinds[0];
        assert!(select.count >= 15, "{engine}: {}", select.count);
        assert_eq!(select.rows, select.count * 2, "{engine}");
    }
}

#[test]
fn every_fault_in_place_of_an_answer_ends_the_level_with_its_cause() {
    for engine in engines() {
        for fault in FAULTS {
            for over_tcp in [false, true] {
                let (cause, message) = failure(engine, over_tcp, fault, 0);
                assert_eq!(cause, fault.cause(), "{engine}, {fault:?}: {message}");
                let expected = match fault {
                    Fault::Close | Fault::Reset => "was lost",
                    Fault::Stall | Fault::Oversized => "for 0.3 s",
                    Fault::LocalFile => "local file '/etc/passwd', which is refused",
                    Fault::Twice => "more bytes came",
                    _ => "breaks the protocol",
                };
                assert!(message.contains(expected), "{engine}, {fault:?}: {message}");
            }
        }
    }
}

/// Cuts are drawn from a seed, so that a failure names the one that replays it.
#[test]
fn a_fault_after_any_part_of_an_answer_ends_the_level_in_time() {
    let answer_bytes = rows().len() as u64;
    for engine in engines() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for fault in FAULTS {
            for _ in 0..2 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let good_bytes = 1 + (state >> 33) % (answer_bytes - 1);
                println!("{engine}: {fault:?} after {good_bytes} bytes");
                failure(engine, true, fault, good_bytes as usize);
            }
        }
    }
}

#[test]
fn an_error_ends_the_level_with_the_server_s_words() {
    for engine in engines() {
        let outcome = level(engine, false, |stream, _| {
            send(stream, &packet(1, b"\xff\x28\x04#42000You are wrong"));
            Then::GoOn
        });
        let failure = outcome.failure.expect("the level fails");
        assert!(
            matches!(failure.cause, Cause::ServerError(code) if code.to_string() == "1064 (42000)"),
            "{engine}: {failure:?}"
        );
        assert!(failure.message.contains("1064 (42000): You are wrong"), "{engine}: {}", failure.message);
    }
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_level() {
    for engine in engines() {
        let peer = Peer::start(|stream| {
            server(stream, |stream, _| {
                send(stream, &rows());
                std::thread::sleep(Duration::from_millis(50));
                // While the user thinks.
                send(stream, &packet(1, OK));
                Then::GoOn
            });
        });
        let mut load = open(&spec(peer.on_tcp(), engine, 1)).unwrap();
        let think = Think::Fixed(Duration::from_millis(200));
        let level = LevelSpec { pacing: Pacing::Closed { think, active: None }, ..LevelSpec::users(1) };
        let outcome = run(&mut load, &level, 10);
        let failure = outcome.failure.expect("the level fails");
        assert_eq!(failure.cause, Cause::Protocol, "{engine}: {}", failure.message);
        assert!(failure.message.contains("nobody had asked for"), "{engine}: {}", failure.message);
    }
}

#[test]
fn a_connection_that_is_lost_while_its_user_thinks_ends_the_level() {
    for engine in engines() {
        let peer = Peer::start(|stream| {
            server(stream, |stream, _| {
                send(stream, &rows());
                Then::HangUp
            });
        });
        let mut load = open(&spec(peer.on_unix(), engine, 1)).unwrap();
        let think = Think::Fixed(Duration::from_millis(30));
        let level = LevelSpec { pacing: Pacing::Closed { think, active: None }, ..LevelSpec::users(1) };
        let outcome = run(&mut load, &level, 5);
        let failure = outcome.failure.expect("the level fails");
        assert_eq!(failure.cause, Cause::ConnectionLost, "{engine}: {}", failure.message);
    }
}

/// Where connections are reopened, each of these is counted, and the level continues.
#[test]
fn lost_connections_are_counted_and_made_anew_where_that_is_allowed() {
    for engine in engines() {
        let peer = Peer::start(|stream| {
            let mut executions = 0;
            server(stream, |stream, _| {
                executions += 1;
                if executions == 5 {
                    stream.reset();
                    return Then::HangUp;
                }
                send(stream, &rows());
                Then::GoOn
            });
        });
        let limits = Limits { reconnect: Duration::from_secs(5), ..LIMITS };
        let load = LoadSpec { limits, ..spec(peer.on_tcp(), engine, 2) };
        let outcome = run(&mut open(&load).unwrap(), &LevelSpec::users(2), 40);
        assert_eq!(outcome.failure, None, "{engine}");
        assert!(outcome.reconnects >= 7, "{engine}: {}", outcome.reconnects);
        let lost = outcome.errors_by_code.iter().find(|(code, _)| code.errno == 2013);
        let lost = lost.map_or(0, |(_, count)| *count);
        // Reconnects are those of the whole level, errors those of its window.
        assert!((1..=outcome.reconnects + 2).contains(&lost), "{engine}: {lost} of {}", outcome.reconnects);
        assert!(outcome.lost_ns_by_code.keys().any(|code| code.errno == 2013), "{engine}");
    }
}

#[test]
fn a_server_that_refuses_or_stalls_every_new_login_ends_a_level_within_its_bound() {
    for engine in engines() {
        for stalls in [false, true] {
            let first = std::sync::atomic::AtomicBool::new(true);
            let peer = Peer::start(move |stream| {
                if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                    server(stream, |stream, _| {
                        send(stream, &rows());
                        Then::HangUp
                    });
                } else if stalls {
                    let_in_half_way(stream);
                } else {
                    send(stream, &packet(0, b"\xff\x10\x04Too many connections"));
                }
            });
            let limits = Limits { reconnect: Duration::from_millis(200), ..NO_LOGIN };
            let load = LoadSpec { limits, ..spec(peer.on_tcp(), engine, 1) };
            let outcome = run(&mut open(&load).unwrap(), &LevelSpec::users(1), 1000);
            let failure = outcome.failure.unwrap_or_else(|| panic!("{engine} goes on"));
            assert_eq!(failure.cause, Cause::ConnectionLost, "{engine}: {}", failure.message);
        }
    }
}

/// Greets, and says nothing more.
fn let_in_half_way(stream: &mut dyn Wire) {
    send(stream, &support::peer::greeting("mysql_native_password"));
    read_packet(stream);
    std::thread::sleep(LONG);
}

#[test]
fn a_server_that_accepts_and_never_answers_is_left_within_the_bound() {
    for engine in engines() {
        for logs_in in [false, true] {
            let peer = Peer::start(move |stream| {
                if logs_in {
                    let_in(stream);
                }
                std::thread::sleep(LONG);
            });
            let load = LoadSpec { limits: NO_LOGIN, ..spec(peer.on_tcp(), engine, 4) };
            let error = open(&load).err().unwrap().to_string();
            assert!(error.contains("did not answer in time"), "{engine}: {error}");
        }
    }
}

/// A stop must not wait for a server that has fallen silent longer than its own bound.
#[test]
fn stopping_a_level_whose_server_is_silent_has_a_bound() {
    for engine in engines() {
        let peer = Peer::start(|stream| server(stream, |stream, _| Fault::Stall.answer(stream, 3)));
        let limits = Limits { stall: Duration::from_secs(60), ..BOUNDS };
        let load = LoadSpec { limits, ..spec(peer.on_unix(), engine, 3) };
        let mut load = open(&load).unwrap();
        let mut running = load.level_with(&LevelSpec::users(3)).unwrap();
        running.begin_measuring();
        let began = std::time::Instant::now();
        wait_until(&running, "time", |_| began.elapsed() > Duration::from_millis(100));
        let outcome = stop(running);
        assert_eq!(outcome.transactions, 0, "{engine}");
    }
}
