//! An agent at a real hub: it does what its own file allows, and nothing else, however often it is asked.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use whyso_agent::{Agent, AgentFolder, Settings};
use whyso_control::Stop;
use whyso_hub::{
    Answer, Bus, Error, HostName, HubFolder, HubServer, HubSettings, MemberKind, NATS_SERVER, Order,
    RecordOrder, RecordingId, Right,
};

const SOON: Duration = Duration::from_secs(20);

/// Whether there is a nats-server; where there is none, that is counted as not tested.
fn has_nats_server() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_on_path = std::env::split_paths(&path).any(|folder| folder.join(NATS_SERVER).is_file());
    let found = is_on_path || std::env::var_os("WHYSO_NATS_SERVER").is_some();
    if !found {
        whyso_testing::not_tested("a hub needs nats-server: scripts/nats_server.sh installs it");
    }
    found
}

/// A hub with one agent, called db.
struct Site {
    folder: tempfile::TempDir,
    hub: HubServer,
    commander: Bus,
    db: HostName,
    stop: Arc<Stop>,
    agent: tokio::task::JoinHandle<whyso_agent::Result<()>>,
}

impl Site {
    async fn start(settings: Settings) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let hub = HubSettings { listen: address.clone(), address, bytes_max: 256 << 20 };
        let hub = HubServer::start(HubFolder::make(&folder.path().join("hub"), hub).unwrap()).await.unwrap();
        let db = HostName::new("db").unwrap();
        let token = hub.folder().invite(db.clone(), MemberKind::Agent).unwrap();
        let place = AgentFolder::new(folder.path().join("agent"));
        place.join(&token).unwrap();
        let stop = Arc::new(Stop::new());
        let (of_agent, agent) = (Arc::clone(&stop), Agent::new(place, settings).unwrap());
        let agent = tokio::spawn(async move { agent.run(&of_agent, &|_| {}).await });
        let commander = Bus::join(&hub.folder().commander().unwrap()).await.unwrap();
        let site = Site { folder, hub, commander, db, stop, agent };
        let begun = Instant::now();
        while site.commander.order(&site.db, &Order::State).await.is_err() {
            assert!(begun.elapsed() < SOON, "the agent does not come");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        site
    }

    async fn record(&self, recording: &str, server: Option<&str>) -> Result<Answer, Error> {
        let order = RecordOrder {
            recording: RecordingId::new(recording).unwrap(),
            server: server.map(str::to_string),
            programs: Vec::new(),
            interval_ms: 0,
            trace: false,
            stacks: "off".to_string(),
            seconds_max: 600,
        };
        self.commander.order(&self.db, &Order::Record(order)).await
    }

    async fn end(self) {
        self.stop.ask();
        tokio::time::timeout(SOON, self.agent).await.unwrap().unwrap().unwrap();
        drop((self.hub, self.folder));
    }
}

fn refusal(answer: Result<Answer, Error>) -> String {
    match answer {
        Err(Error::AgentRefuses { why, .. }) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_file_of_the_host_does_not_allow_is_refused() {
    if !has_nats_server() {
        return;
    }
    let site = Site::start(Settings { may: vec![Right::Load], ..Settings::default() }).await;
    let why = refusal(site.record("r1", None).await);
    assert!(why.contains("may not observe"), "{why}");
    site.end().await;

    let site = Site::start(Settings::default()).await;
    // A server that its file does not name: a DSN is no name either.
    for server in ["shop", "mysql://root@localhost/", "../../etc"] {
        let why = refusal(site.record("r1", Some(server)).await);
        assert!(why.contains("names no server"), "{why}");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commander_that_floods_gets_no_more_than_a_few_recordings_and_the_agent_still_answers() {
    if !has_nats_server() {
        return;
    }
    let site = Site::start(Settings::default()).await;
    let mut begun = 0;
    for number in 0..40 {
        match site.record(&format!("r{number}"), None).await {
            Ok(_) => begun += 1,
            Err(Error::AgentRefuses { why, .. }) => assert!(why.contains("under way"), "{why}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(begun, 4);
    let asked: Vec<_> = (0..300)
        .map(|_| {
            let (bus, db) = (site.commander.clone(), site.db.clone());
            tokio::spawn(async move { bus.order(&db, &Order::State).await.is_ok() })
        })
        .collect();
    let mut answered = 0;
    for one in asked {
        answered += usize::from(one.await.unwrap());
    }
    assert!(answered >= 200, "{answered} of 300 orders were answered");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_recorded_arrives_whole_and_nothing_of_it_stays_on_the_host() {
    if !has_nats_server() {
        return;
    }
    let site = Site::start(Settings::default()).await;
    let recording = RecordingId::new("r1").unwrap();
    let mut frames = site.commander.frames(&recording).await.unwrap();
    site.record("r1", None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    site.commander.order(&site.db, &Order::End { recording: recording.clone() }).await.unwrap();
    let (mut numbers, mut readings) = (Vec::new(), 0);
    loop {
        let received = frames.next(SOON).await.unwrap().expect("the last frame does not come");
        let frame = received.frame.as_ref().unwrap();
        numbers.push(frame.number);
        readings +=
            frame.entries("db").filter(|entry| matches!(entry, Ok(whyso_record::Entry::Reading(_)))).count();
        received.done().await.unwrap();
        if frame.is_last {
            break;
        }
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(readings > 20, "{readings} readings");
    let is_empty = |name: &str| {
        let left = std::fs::read_dir(site.folder.path().join("agent").join(name));
        left.map_or(true, |mut left| left.next().is_none())
    };
    let begun = Instant::now();
    while !(is_empty("outbox") && is_empty("runs")) {
        assert!(begun.elapsed() < SOON, "something is left on the host");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    site.end().await;
}
