//! Replicas, watched while an experiment runs: how much further behind they are than at its start.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mysql_async::Conn;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use whyso_server::Dsn;
use whyso_server::answers::answered;
use whyso_watch::{Lag, LagQuestion};

use crate::Error;

const ASK_INTERVAL: Duration = Duration::from_millis(300);
/// A replica that does not answer for this long counts as one that stopped.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// Stands for a replica that stopped, or no longer answers.
const STOPPED: u64 = u64::MAX;

/// By how much the replica that fell behind most is further behind than at the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LagRise(Arc<AtomicU64>);

impl LagRise {
    /// Why the experiment has to end, if it has to.
    pub(super) fn why_to_end(&self, seconds_max: u64) -> Option<String> {
        match self.0.load(Relaxed) {
            STOPPED => {
                Some("a replica has stopped replicating, or no longer says how far behind it is".to_string())
            }
            seconds if seconds > seconds_max => {
                Some(format!("a replica is {seconds} s further behind than at the start"))
            }
            _ => None,
        }
    }
}

/// Asks until it is dropped.
pub(super) struct ReplicaWatch {
    rise: LagRise,
    asking: JoinHandle<()>,
}

impl ReplicaWatch {
    /// `tested`: servers that may be replicas. `replicas`: servers that are. `None` where there is no replica.
    ///
    /// # Errors
    /// One of `replicas` can't be reached, is no replica, or does not replicate.
    pub(super) fn start(
        runtime: &Runtime,
        tested: &[Dsn],
        replicas: &[String],
    ) -> Result<Option<ReplicaWatch>, Error> {
        let named = replicas.iter().map(|dsn| Dsn::resolve(dsn)).collect::<Result<Vec<Dsn>, _>>()?;
        let mut replicas = Vec::new();
        for (dsn, is_named) in
            tested.iter().map(|dsn| (dsn, false)).chain(named.iter().map(|dsn| (dsn, true)))
        {
            let first =
                runtime.block_on(answered(dsn, "asking how far behind it is", Replica::connect(dsn)))?;
            match first {
                Some(replica) => replicas.push(replica),
                None if is_named => {
                    return Err(Error::Plan(format!(
                        "--replica {}: it does not replicate, or does not say how far behind it is: GRANT REPLICATION CLIENT ON *.*, on MariaDB \
                         10.5 and later SLAVE MONITOR",
                        dsn.endpoint()
                    )));
                }
                None => {}
            }
        }
        if replicas.is_empty() {
            return Ok(None);
        }
        let rise = LagRise::default();
        let shared = rise.clone();
        let asking = runtime.spawn(async move {
            loop {
                let mut most = 0;
                for replica in &mut replicas {
                    most = most.max(replica.rise().await);
                }
                shared.0.store(most, Relaxed);
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        });
        Ok(Some(ReplicaWatch { rise, asking }))
    }

    pub(super) fn rise(&self) -> LagRise {
        self.rise.clone()
    }
}

impl Drop for ReplicaWatch {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

struct Replica {
    conn: Conn,
    question: LagQuestion,
    begin_s: f64,
}

impl Replica {
    /// `None` where it replicates nothing now.
    async fn connect(dsn: &Dsn) -> Result<Option<Replica>, Error> {
        let mut conn = dsn.connect_without_schema().await?;
        let mut question = LagQuestion::default();
        let lag = question.ask(&mut conn).await;
        match lag.map_err(|error| Error::Failed(format!("{} does not say: {error}", dsn.endpoint())))? {
            Lag::Seconds(begin_s) => Ok(Some(Replica { conn, question, begin_s })),
            Lag::None | Lag::Stopped => Ok(None),
        }
    }

    /// In whole seconds.
    async fn rise(&mut self) -> u64 {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.question.ask(&mut self.conn)).await {
            Ok(Ok(Lag::Seconds(now_s))) => (now_s - self.begin_s).max(0.0) as u64,
            _ => STOPPED,
        }
    }
}
