//! A queue of work whose workers, hub and commander are killed: each piece is done, and counts once.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{agent, has_nats_server, hub, join};
use tokio::task::JoinHandle;
use whyso_hub::{Bus, Frame, HubFolder, HubServer, RecordingId, Token};

const PIECES: u32 = 60;
const KILLS: u32 = 50;
const PARTS: u64 = 3;
/// A piece of a worker that was killed is free after this time.
const LOST_AFTER: Duration = Duration::from_millis(1500);
const BOUND: Duration = Duration::from_secs(150);

/// Numbers that differ from run to run in nothing.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Takes pieces and hands over what they give, each in some parts, until it is killed.
async fn work(token: Token, work: RecordingId, begun: Arc<AtomicU32>) {
    let bus = join(&token).await;
    loop {
        let Ok(Some(piece)) = bus.take_work(&work).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        begun.fetch_add(1, Ordering::Relaxed);
        for number in 1..=PARTS {
            // What it is at work on takes a while, in which it may be killed.
            tokio::time::sleep(Duration::from_millis(60)).await;
            let entries = vec![piece.number as u8; 50];
            let part = Frame { number, is_last: number == PARTS, lost: 0, entries };
            let bytes = bytes::Bytes::from(part.to_bytes().unwrap());
            while bus.publish_result(&work, &piece, bytes.clone()).await.is_err() {
                let _ = piece.keep().await;
            }
        }
        let _ = piece.done().await;
    }
}

/// Receives results until all pieces are counted, or it is killed. `counted` is what outlives it, like a file.
async fn command(bus: Bus, work: RecordingId, counted: Arc<std::sync::Mutex<Vec<u32>>>) {
    let mut coming: BTreeMap<(String, u32, u32), Vec<whyso_hub::PartReceipt>> = BTreeMap::new();
    let mut results = loop {
        match bus.results(&work).await {
            Ok(results) => break results,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    loop {
        let part = match results.next(Duration::from_millis(200)).await {
            Ok(Some(part)) => part,
            Ok(None) => continue,
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                if let Ok(again) = bus.results(&work).await {
                    (results, coming) = (again, BTreeMap::new());
                }
                continue;
            }
        };
        let is_counted = counted.lock().unwrap().contains(&part.number);
        if is_counted {
            let _ = part.receipt.done().await;
            continue;
        }
        let key = (part.host.to_string(), part.number, part.attempt);
        let parts = coming.entry(key.clone()).or_default();
        let frame = part.frame.as_ref().unwrap();
        if frame.number != parts.len() as u64 + 1 {
            continue;
        }
        let (is_last, number) = (frame.is_last, part.number);
        parts.push(part.receipt);
        if is_last {
            counted.lock().unwrap().push(number);
            // It may be killed before the hub hears that it can forget them.
            for receipt in coming.remove(&key).unwrap() {
                let _ = receipt.done().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_piece_is_lost_or_counted_twice_however_often_workers_hub_and_commander_are_killed() {
    if !has_nats_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut hub_now: Option<HubServer> = Some(hub(folder.path()).await);
    let settings = hub_now.as_ref().unwrap().folder().settings().clone();
    let study = RecordingId::new("study-1").unwrap();
    let tokens: Vec<Token> =
        (0..4).map(|number| agent(hub_now.as_ref().unwrap(), &format!("worker-{number}"))).collect();
    let commander = join(&hub_now.as_ref().unwrap().folder().commander().unwrap()).await;
    let pieces: BTreeSet<u32> = (0..PIECES).collect();
    commander.queue_work(&study, &pieces, LOST_AFTER).await.unwrap();
    // A commander that comes back queues what it does not know to be done. Nothing is in the queue twice.
    commander.queue_work(&study, &pieces, LOST_AFTER).await.unwrap();
    assert_eq!(commander.queued_work(&study).await.unwrap(), pieces);

    let begun = Arc::new(AtomicU32::new(0));
    let start = |token: &Token| tokio::spawn(work(token.clone(), study.clone(), Arc::clone(&begun)));
    let counted = Arc::default();
    let start_commander = || tokio::spawn(command(commander.clone(), study.clone(), Arc::clone(&counted)));
    let mut workers: Vec<JoinHandle<()>> = tokens.iter().map(start).collect();
    let mut commanding = start_commander();
    let mut numbers = Numbers(20_261_128);
    let began = Instant::now();
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(100 + numbers.below(200))).await;
        match kill % 10 {
            4 => {
                // It ends at once, and comes back on the same folder.
                drop(hub_now.take());
                let folder = HubFolder::make(folder.path(), settings.clone()).unwrap();
                hub_now = Some(HubServer::start(folder).await.unwrap());
            }
            2 | 7 => {
                commanding.abort();
                commanding = start_commander();
            }
            _ => {
                let at = numbers.below(4) as usize;
                workers[at].abort();
                workers[at] = start(&tokens[at]);
            }
        }
    }
    while counted.lock().unwrap().len() < PIECES as usize {
        assert!(began.elapsed() < BOUND, "{:?} were counted", counted.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut found: Vec<u32> = counted.lock().unwrap().clone();
    found.sort_unstable();
    assert_eq!(found, (0..PIECES).collect::<Vec<_>>());
    assert!(begun.load(Ordering::Relaxed) > PIECES, "no piece was begun by more than one worker");
    workers.iter().for_each(JoinHandle::abort);
    commanding.abort();
    commander.forget_work(&study).await.unwrap();
}
