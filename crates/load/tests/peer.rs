//! Logging in to a scripted peer, and what is refused before a level begins.

mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::engines::{LIMITS, engines, point_select, run, spec};
use support::peer::{OK, Peer, Then, greeting, let_in, packet, read_packet, rows, send, server};
use whyso_load::{Engine, LevelSpec, LoadError, NativeWork, Target};
use whyso_workload::{Options, Workload};

fn connect(target: &Target) -> Result<Engine, LoadError> {
    let began = Instant::now();
    let engine = Engine::connect_with(target, &point_select(), 1, 1, None, LIMITS);
    assert!(began.elapsed() < Duration::from_secs(10), "connecting has a bound");
    engine
}

/// Why no connection can be opened, as users read it.
fn refusal(target: &Target) -> String {
    connect(target).err().expect("the connection is refused").to_string()
}

#[test]
fn what_does_not_greet_as_a_server_is_recognised() {
    let greet = |bytes: Vec<u8>| {
        let peer = Peer::start(move |stream| send(stream, &bytes));
        refusal(&peer.on_tcp())
    };
    assert!(greet(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()).contains("does not speak the MySQL protocol"));
    assert!(greet(packet(0, b"\x0a")).contains("its greeting can't be read"));
    assert!(
        greet(packet(0, b"\xff\x10\x04Too many connections")).contains("error 1040: Too many connections")
    );
    assert!(greet(Vec::new()).contains("closed the connection"));
    let silent = Peer::start(|stream| {
        let _ = stream.read(&mut [0; 1]);
    });
    let message = refusal(&silent.on_tcp());
    assert!(message.contains("did not answer in time"), "{message}");
}

/// A peer that greets, switches to a plugin where one is named, sends more of the login, and keeps what it is sent.
fn login(switch_to: Option<&'static [u8]>, more: &'static [u8]) -> (Peer, Arc<Mutex<Vec<Vec<u8>>>>) {
    let packets = Arc::new(Mutex::new(Vec::new()));
    let peer_packets = packets.clone();
    let peer = Peer::start(move |stream| {
        send(stream, &greeting("caching_sha2_password"));
        read_packet(stream);
        let mut sequence = 2;
        for payload in [switch_to.unwrap_or_default(), more] {
            if payload.is_empty() {
                continue;
            }
            send(stream, &packet(sequence, payload));
            peer_packets.lock().unwrap().push(read_packet(stream));
            sequence += 2;
        }
        send(stream, &packet(sequence, OK));
        while !read_packet(stream).is_empty() {
            send(stream, &packet(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        }
    });
    (peer, packets)
}

const FULL_CACHING_SHA2: &[u8] = &[1, 4];
const TO_CLEAR: &[u8] = b"\xfemysql_clear_password\0";

#[test]
fn the_password_itself_is_sent_over_a_unix_socket_only() {
    for (switch_to, more) in [(None, FULL_CACHING_SHA2), (Some(TO_CLEAR), &[][..])] {
        let (peer, packets) = login(switch_to, more);
        connect(&peer.on_unix()).unwrap();
        assert_eq!(packets.lock().unwrap()[0], b"sesame\0");

        let (peer, packets) = login(switch_to, more);
        let message = refusal(&peer.on_tcp());
        assert!(message.contains("Unix socket"), "{message}");
        drop(peer);
        let leaked =
            packets.lock().unwrap().iter().any(|packet| packet.windows(6).any(|part| part == b"sesame"));
        assert!(!leaked);
    }
}

#[test]
fn a_switch_of_plugin_is_answered_with_what_that_plugin_wants() {
    let (peer, packets) = login(Some(b"\xfeclient_ed25519\x000123456789abcdef0123456789abcdef"), &[]);
    connect(&peer.on_tcp()).unwrap();
    assert_eq!(packets.lock().unwrap()[0].len(), 64);
    let (peer, packets) = login(Some(b"\xfemysql_native_password\x0001234567890123456789\0"), &[]);
    connect(&peer.on_tcp()).unwrap();
    assert_eq!(packets.lock().unwrap()[0].len(), 20);
}

#[test]
fn logins_that_can_t_be_are_refused_in_one_sentence() {
    let (peer, _) = login(Some(b"\xfe"), &[]);
    assert!(refusal(&peer.on_tcp()).contains("before MySQL 4.1"));
    let (peer, _) = login(Some(b"\xfedialog\0Who are you?"), &[]);
    assert!(refusal(&peer.on_tcp()).contains("the plugin dialog"));
    let (peer, _) = login(None, b"\x07surprise");
    assert!(refusal(&peer.on_tcp()).contains("something unknown"));
    let endless = Peer::start(|stream| {
        send(stream, &greeting("caching_sha2_password"));
        for sequence in 2..100 {
            send(stream, &packet(sequence, &[1, 3]));
        }
        let _ = stream.read(&mut [0; 1024]);
        std::thread::sleep(Duration::from_secs(3));
    });
    assert!(refusal(&endless.on_unix()).contains("too many steps"));
}

#[test]
fn what_a_server_cannot_prepare_is_sent_as_text_unless_it_has_values() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let heard_by_peer = heard.clone();
    let peer = Peer::start(move |stream| {
        let_in(stream);
        for statement in (1..=u8::MAX).cycle() {
            let payload = read_packet(stream);
            let text = String::from_utf8_lossy(payload.get(1..).unwrap_or_default()).into_owned();
            match payload.first() {
                Some(0x16) if text == "BEGIN" => {
                    send(stream, &packet(1, b"\xff\x0f\x05#HY000can't be prepared"));
                }
                Some(0x16) => send(stream, &packet(1, &[0, statement, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
                Some(0x17) => send(stream, &rows()),
                Some(0x03) => {
                    heard_by_peer.lock().unwrap().push(text);
                    send(stream, &packet(1, OK));
                }
                _ => return,
            }
        }
    });
    let options = Options { tables: 1, ..Options::default() };
    let workload = Workload::builtin("oltp-read-only", &options).unwrap();
    for engine in engines() {
        let work = Arc::new(NativeWork::new(&workload, 1));
        let mut opened = Engine::open(&spec(peer.on_unix(), engine, 1), work).unwrap();
        heard.lock().unwrap().clear();
        let outcome = run(&mut opened, &LevelSpec::users(1), 3);
        assert_eq!(outcome.failure, None);
        let heard = heard.lock().unwrap();
        // a ROLLBACK ends what is open when the level is stopped
        let begins = heard.iter().filter(|text| *text == "BEGIN").count();
        assert!(begins >= 3 && heard.len() <= begins + 1, "{engine}: {heard:?}");
    }

    let peer = Peer::start(|stream| {
        let_in(stream);
        while !read_packet(stream).is_empty() {
            send(stream, &packet(1, b"\xff\x0f\x05#HY000can't be prepared"));
        }
    });
    let message = refusal(&peer.on_unix());
    assert!(message.contains("refused to prepare") && message.contains("error 1295"), "{message}");
}

#[test]
fn no_users_and_cpus_that_are_not_there_are_refused() {
    let peer = Peer::start(|stream| {
        server(stream, |stream, _| {
            send(stream, &rows());
            Then::GoOn
        });
    });
    let connect = |users: u32, cpus: Option<Vec<u32>>| {
        Engine::connect_with(&peer.on_unix(), &point_select(), users, 1, cpus, LIMITS).map(|_| ())
    };
    assert!(connect(0, None).unwrap_err().to_string().contains("0 users"));
    for cpus in [vec![], vec![100_000], vec![1023]] {
        let message = connect(1, Some(cpus)).unwrap_err().to_string();
        assert!(message.contains("name CPUs that this machine has"), "{message}");
    }
    connect(1, Some(vec![0])).unwrap();
}
