//! A real hub: who may do what on it, and that no frame is lost or counted twice.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{SOON, agent, has_nats_server, hub, join, name};
use whyso_hub::{
    AGENT_LOST_AFTER, Answer, Bus, Error, Frame, HubFolder, HubServer, HubSettings, MemberKind, Order,
    RecordingId, Token,
};

/// For what must not happen.
const A_WHILE: Duration = Duration::from_millis(700);

fn frame(number: u64) -> Frame {
    Frame { number, is_last: false, lost: 0, entries: vec![number as u8; 100] }
}

async fn publish(bus: &Bus, recording: &RecordingId, number: u64) -> whyso_hub::Result<()> {
    bus.publish(recording, frame(number).to_bytes().unwrap().into()).await
}

/// Answers every order with its own text, until the connection ends.
fn answer_all(bus: Bus) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut questions = bus.questions().await.unwrap();
        while let Some(question) = questions.next().await {
            let why = format!("{:?}", question.order);
            question.answer(&Answer::Refused { why }).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_clocks_and_frames_pass_between_a_commander_and_an_agent() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path()).await;
    let db = join(&agent(&hub, "db")).await;
    let answers = answer_all(db.clone());
    let commander = join(&hub.folder().commander().unwrap()).await;
    let asked = async {
        loop {
            match commander.order(&name("db"), &Order::State).await {
                Err(Error::AgentRefuses { why, .. }) => return why,
                Err(Error::Silent { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(tokio::time::timeout(SOON, asked).await.unwrap(), "Some(State)");
    let clock = commander.clock(&name("db")).await.unwrap();
    // Both read the same clock here.
    assert!(clock.sent_ns <= clock.there_ns && clock.there_ns <= clock.received_ns, "{clock:?}");

    let recording = RecordingId::new("20261128-1").unwrap();
    for number in 1..=50 {
        publish(&db, &recording, number).await.unwrap();
    }
    // The hub's word was lost, and the agent publishes once more.
    for number in 30..=50 {
        publish(&db, &recording, number).await.unwrap();
    }
    publish(&db, &RecordingId::new("20261128-2").unwrap(), 1).await.unwrap();
    let mut frames = commander.frames(&recording).await.unwrap();
    let mut numbers = Vec::new();
    while let Some(received) = frames.next(A_WHILE).await.unwrap() {
        assert_eq!(received.host, name("db"));
        numbers.push(received.frame.as_ref().unwrap().number);
        received.done().await.unwrap();
    }
    // A frame that was published twice comes twice, with its number.
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (1..=50).collect::<Vec<_>>());
    frames.forget().await;
    let mut later = commander.frames(&recording).await.unwrap();
    assert!(later.next(A_WHILE).await.unwrap().is_none());
    answers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_is_that_agent_only_until_it_is_withdrawn() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path()).await;
    let commander = join(&hub.folder().commander().unwrap()).await;
    let (db, stolen) = (agent(&hub, "db"), agent(&hub, "load"));
    let db_bus = join(&db).await;
    let db_answers = answer_all(db_bus.clone());
    let thief = join(&stolen).await;
    let recording = RecordingId::new("r1").unwrap();

    // It may not order another agent, ask its clock, nor read what another one records.
    let ordered = tokio::time::timeout(A_WHILE, async { thief.order(&name("db"), &Order::State).await });
    assert!(!matches!(ordered.await, Ok(Ok(_) | Err(Error::AgentRefuses { .. }))));
    assert!(thief.clock(&name("db")).await.is_err());
    publish(&db_bus, &recording, 1).await.unwrap();
    assert!(thief.frames(&recording).await.is_err());
    // It takes work, and gives none, and does not see what others found.
    assert!(thief.queue_work(&recording, &BTreeSet::from([1]), AGENT_LOST_AFTER).await.is_err());
    assert!(thief.results(&recording).await.is_err());
    // Nor publish under another one's name: the token with another name in it is refused at the door of that subject.
    let mut line: serde_json::Value = serde_json::to_value(&stolen).unwrap();
    line["name"] = "db".into();
    let forged: Token = serde_json::from_value(line).unwrap();
    let forger = join(&forged).await;
    assert!(publish(&forger, &recording, 2).await.is_err());
    let mut frames = commander.frames(&recording).await.unwrap();
    let mut hosts = Vec::new();
    while let Some(received) = frames.next(A_WHILE).await.unwrap() {
        hosts.push((received.host.to_string(), received.frame.as_ref().unwrap().number));
    }
    assert_eq!(hosts, [("db".to_string(), 1)]);
    // As itself it may.
    publish(&thief, &recording, 7).await.unwrap();
    let never_received = RecordingId::new("r2").unwrap();
    publish(&thief, &never_received, 1).await.unwrap();

    hub.folder().withdraw(&name("load")).await.unwrap();
    let begun = std::time::Instant::now();
    while publish(&thief, &recording, 8).await.is_ok() {
        assert!(begun.elapsed() < SOON, "a withdrawn token is still let in");
    }
    assert!(matches!(Bus::join(&stolen).await, Err(Error::Refused { .. })));
    // What it had published is not received any more.
    let mut frames = commander.frames(&never_received).await.unwrap();
    assert!(frames.next(A_WHILE).await.unwrap().is_none(), "a frame of a withdrawn host");
    // The other one is not disturbed.
    publish(&db_bus, &recording, 3).await.unwrap();
    db_answers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_hub_or_none_is_refused_with_what_to_do() {
    if !has_nats_server() {
        return;
    }
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (hub, another) = (hub(one.path()).await, hub(other.path()).await);
    let token = agent(&another, "db");
    let mut elsewhere: serde_json::Value = serde_json::to_value(&token).unwrap();
    elsewhere["address"] = hub.folder().settings().address.clone().into();
    let token: Token = serde_json::from_value(elsewhere).unwrap();
    // Its certificate is another hub's: it does not even log in.
    let error = Bus::join(&token).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    for line in ["", "whyso-1-", "whyso-1-e30", "whyso-1-%%%", "hello"] {
        assert!(matches!(Token::from_line(line), Err(Error::Token)), "{line}");
    }
    let twice = hub.folder().invite(name("commander"), MemberKind::Agent).unwrap_err();
    assert!(twice.to_string().contains("whyso hub withdraw commander"), "{twice}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_hub_keeps_survives_its_restart_and_members_come_back() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = hub(folder.path()).await;
    let settings = first.folder().settings().clone();
    let token = agent(&first, "db");
    let db = join(&token).await;
    let recording = RecordingId::new("r1").unwrap();
    publish(&db, &recording, 1).await.unwrap();
    drop(first);
    assert!(publish(&db, &recording, 2).await.is_err());
    let again = HubServer::start(HubFolder::make(folder.path(), settings).unwrap()).await.unwrap();
    let begun = std::time::Instant::now();
    while publish(&db, &recording, 2).await.is_err() {
        assert!(begun.elapsed() < SOON, "the agent does not come back");
    }
    let commander = join(&again.folder().commander().unwrap()).await;
    let mut frames = commander.frames(&recording).await.unwrap();
    let mut numbers = Vec::new();
    while let Some(received) = frames.next(A_WHILE).await.unwrap() {
        numbers.push(received.frame.as_ref().unwrap().number);
    }
    numbers.dedup();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_not_signal_the_hub_still_changes_its_members() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut hub = hub(folder.path()).await;
    // As in another container: its process is not seen.
    std::fs::remove_file(folder.path().join("nats-server.pid")).unwrap();
    let token = agent(&hub, "db");
    assert!(Bus::join(&token).await.is_err(), "nobody has reloaded it yet");
    hub.reload_if_changed().unwrap();
    let bus = join(&token).await;
    hub.folder().withdraw(&name("db")).await.unwrap();
    assert!(Bus::join(&token).await.is_ok(), "nobody has reloaded it yet");
    hub.reload_if_changed().unwrap();
    let begun = std::time::Instant::now();
    while Bus::join(&token).await.is_ok() || bus.is_connected() {
        assert!(begun.elapsed() < SOON, "the host was not cut off");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_hub_runs_on_a_folder_and_another_address_does_not_void_tokens_silently() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = hub(folder.path()).await;
    let same = first.folder().settings().clone();
    let second = HubServer::start(HubFolder::make(folder.path(), same.clone()).unwrap()).await;
    assert!(second.err().unwrap().to_string().contains("runs on this folder already"));
    let token = agent(&first, "db");
    drop(join(&token).await);
    drop(first);
    let other = HubSettings { address: "lab1:4222".to_string(), ..same.clone() };
    let error = HubFolder::make(folder.path(), other).unwrap_err();
    assert!(error.to_string().contains(&format!("--address {}", same.address)), "{error}");
    // The token of before still holds.
    let again = HubServer::start(HubFolder::make(folder.path(), same).unwrap()).await.unwrap();
    join(&token).await;
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_subject_that_is_an_order_to_the_server_does_nothing() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path()).await;
    let recording = RecordingId::new("r1").unwrap();
    let (db, thief) = (join(&agent(&hub, "db")).await, join(&agent(&hub, "load")).await);
    publish(&db, &recording, 1).await.unwrap();
    // The hub answers a frame at the subject that its sender names.
    for reply in ["$JS.API.STREAM.PURGE.WHYSO_FRAMES", "$JS.API.STREAM.DELETE.WHYSO_FRAMES", "whyso.ask.db"] {
        thief.publish_with_reply(&recording, frame(1).to_bytes().unwrap().into(), reply).await.unwrap();
    }
    publish(&thief, &recording, 2).await.unwrap();
    let commander = join(&hub.folder().commander().unwrap()).await;
    let mut frames = commander.frames(&recording).await.unwrap();
    let mut hosts = Vec::new();
    while let Some(received) = frames.next(A_WHILE).await.unwrap() {
        hosts.push(received.host.to_string());
        received.done().await.unwrap();
    }
    assert!(hosts.contains(&"db".to_string()), "{hosts:?}");
}
