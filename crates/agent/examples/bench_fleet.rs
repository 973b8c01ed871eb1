//! What a hub with many agents costs: `bench_fleet [AGENTS] [SAMPLES_PER_S] [SECONDS]`, see bench/fleet/README.md.
//!
//! The hub and one receiver run here, the agents in a process of their own: this program again, with `agents` as its first argument.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use whyso_agent::{Outbox, OutboxSpace};
use whyso_clock::{monotonic_ns, process_cpu_ns};
use whyso_hub::{Bus, HostName, HubFolder, HubServer, HubSettings, MemberKind, RecordingId, Token};
use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::{Entry, Options, Recorder, Replay};

type Failure = Box<dyn std::error::Error>;

const RECORDING: &str = "fleet";
/// Values of one reading.
const VALUES: usize = 50;
/// Frames of an agent per second, as an outbox makes them.
const FRAMES_PER_S: u32 = 4;
/// Clock ticks of /proc/PID/stat per second.
const TICKS_PER_S: f64 = 100.0;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    if let [first, seconds, samples, tokens @ ..] = &arguments[..]
        && first == "agents"
    {
        return runtime.block_on(publish(seconds.parse()?, samples.parse()?, tokens));
    }
    let number = |at: usize, otherwise: usize| arguments.get(at).map_or(Ok(otherwise), |text| text.parse());
    runtime.block_on(bench(number(0, 100)?, number(1, 50_000)?, number(2, 20)?))
}

async fn bench(agents: usize, samples_per_s: usize, seconds: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in("/var/tmp")?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let settings = HubSettings { listen: address.clone(), address, bytes_max: 4 << 30 };
    let hub = HubFolder::make(&folder.path().join("hub"), settings)?;
    let mut tokens = Vec::new();
    for number in 0..agents {
        let token = hub.invite(HostName::new(&format!("host-{number}"))?, MemberKind::Agent)?;
        tokens.push(token.to_line());
    }
    let server = HubServer::start(hub).await?;
    let nats_pid: u32 =
        std::fs::read_to_string(server.folder().path().join("nats-server.pid"))?.trim().parse()?;
    let bus = Bus::join(&server.folder().commander()?).await?;
    let mut frames = bus.frames(&RecordingId::new(RECORDING)?).await?;
    let recorder = Recorder::create(&folder.path().join("run"), Options::default())?;
    let mut replays: Vec<Option<Replay>> = (0..agents).map(|_| None).collect();
    let mut child = Command::new(std::env::current_exe()?)
        .arg("agents")
        .args([seconds.to_string(), (samples_per_s / agents).to_string()])
        .args(&tokens)
        .stdin(Stdio::null())
        .spawn()?;
    let (mut samples, mut last, mut lags) = (0u64, 0, Vec::new());
    let mut begun = None;
    while last < agents {
        let Some(received) = frames.next(Duration::from_secs(30)).await? else {
            return Err("no frame came within 30 s".into());
        };
        let started = *begun.get_or_insert_with(|| (Instant::now(), process_cpu_ns(), cpu_s(nats_pid)));
        let place: usize = received.host.as_str().trim_start_matches("host-").parse()?;
        let replay = replays[place]
            .get_or_insert_with(|| Replay::new(recorder.clone(), received.host.as_str(), true, false));
        let frame = received.frame.as_ref().map_err(ToString::to_string)?;
        let mut newest_ns = None;
        for entry in frame.entries(received.host.as_str()) {
            let entry = entry?;
            if let Entry::Reading(reading) = &entry {
                samples += reading.values.len() as u64;
                newest_ns = Some(reading.end_ns);
            }
            replay.entry(entry, |t_ns| t_ns)?;
        }
        received.done().await?;
        lags.extend(newest_ns.map(|newest_ns| (monotonic_ns() - newest_ns) as f64 / 1e6));
        last += usize::from(frame.is_last);
        if last == agents {
            let elapsed_s = started.0.elapsed().as_secs_f64();
            let own_s = (process_cpu_ns() - started.1) as f64 / 1e9;
            let nats_s = cpu_s(nats_pid) - started.2;
            lags.sort_by(f64::total_cmp);
            let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize];
            println!("samples received: {samples}, {:.0} per second", samples as f64 / elapsed_s);
            println!("CPU of nats-server: {:.1} % of a core", 100.0 * nats_s / elapsed_s);
            println!("CPU of the receiver with its recorder: {:.1} % of a core", 100.0 * own_s / elapsed_s);
            println!(
                "from the newest reading of a frame until it is recorded: median {:.0} ms, 99 % {:.0} ms",
                at(0.5),
                at(0.99)
            );
        }
    }
    let summary = recorder.finish()?;
    println!("recorded: {} samples of {} series, {} lost", summary.samples, summary.series, summary.lost);
    child.wait()?;
    Ok(())
}

/// CPU time that a process has used.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_S
}

/// All agents: each with its own connection and outbox, as agents have them.
async fn publish(seconds: usize, samples_per_s: usize, tokens: &[String]) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in("/var/tmp")?;
    let mut tasks = Vec::new();
    for (place, line) in tokens.iter().enumerate() {
        let token = Token::from_line(line)?;
        let path = folder.path().join(place.to_string());
        tasks.push(tokio::spawn(one_agent(token, path, seconds, samples_per_s)));
    }
    for task in tasks {
        task.await?.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn one_agent(
    token: Token,
    folder: std::path::PathBuf,
    seconds: usize,
    samples_per_s: usize,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let bus = Bus::join(&token).await?;
    let outbox = Arc::new(Outbox::begin(&folder, OutboxSpace::new(1 << 30, 0))?);
    let readings = (samples_per_s / FRAMES_PER_S as usize / VALUES).max(1);
    for number in 0..readings * VALUES {
        outbox.put(&Entry::Series(SeriesId(number as u32), key(number)));
    }
    let recording = RecordingId::new(RECORDING)?;
    let (handed, sender) = (Arc::clone(&outbox), tokio::sync::watch::Sender::new(Some(bus)));
    let publisher = tokio::spawn(whyso_agent::publish_outbox(sender.subscribe(), recording, handed));
    let mut ticker = tokio::time::interval(Duration::from_secs(1) / FRAMES_PER_S);
    for round in 0..seconds * FRAMES_PER_S as usize {
        ticker.tick().await;
        for reading in 0..readings {
            let now_ns = monotonic_ns();
            let value = |at: usize| {
                let id = SeriesId((reading * VALUES + at) as u32);
                (id, Value::Int((round * (at + 1) * 37) as i64))
            };
            outbox.put(&Entry::Reading(Reading {
                source: "status".to_string(),
                begin_ns: now_ns,
                end_ns: now_ns + 1,
                status: Status::Ok,
                values: (0..VALUES).map(value).collect(),
            }));
        }
    }
    tokio::task::spawn_blocking(move || outbox.end()).await?;
    publisher.await?;
    Ok(())
}

fn key(number: usize) -> SeriesKey {
    let [host, source] = ["server", "status"].map(str::to_string);
    let metric = format!("Metric_{number}");
    SeriesKey { host, source, metric, instance: String::new(), kind: Kind::Counter, unit: "1".to_string() }
}
