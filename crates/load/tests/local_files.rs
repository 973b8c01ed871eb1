//! LOAD DATA LOCAL is sent a piece at a time, on every engine.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use support::Server;
use support::engines::engines;
use whyso_load::{
    Cause, Command, Driver, Engine, EngineKind, Expects, Kind, LevelOutcome, LevelSpec, LoadSpec, Next,
    Reply, Turn, Work,
};

const PIECES: u64 = 100;
const LINES_A_PIECE: u64 = 1_000;
const LINE: &[u8] =
    b"7\twords that make the line longer, so that a piece has a hundred kilobytes or so, as pieces have\n";

/// User 0 loads one file; the others ask for 1 over and over.
struct Loads {
    kinds: Vec<String>,
    counts: Arc<TransactionCounts>,
}

#[derive(Default)]
struct TransactionCounts {
    /// Transactions of the others that ended.
    of_others: AtomicU64,
    /// Of those, the ones before the first piece of the file was asked for, and until the last one was.
    before_first: AtomicU64,
    until_last: AtomicU64,
    /// A piece was not gone when the next one was asked for.
    is_gathered: AtomicBool,
    /// User 0 has its answer, and left: the server's rows are there before its answer is.
    has_left: AtomicBool,
}

struct Loader {
    pieces_left: u64,
    asked: bool,
    counts: Arc<TransactionCounts>,
    is_other: bool,
}

impl Work for Loads {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn sends_files(&self) -> bool {
        true
    }

    fn drivers(
        &self,
        _loop_number: u32,
        users: &[u32],
    ) -> Result<Vec<Box<dyn Driver>>, whyso_load::WorkError> {
        let driver = |user: &u32| -> Box<dyn Driver> {
            Box::new(Loader {
                pieces_left: PIECES,
                asked: false,
                counts: self.counts.clone(),
                is_other: *user > 0,
            })
        };
        Ok(users.iter().map(driver).collect())
    }
}

impl Driver for Loader {
    fn begin(&mut self, _number: u64, _by_arrival: bool) {
        self.asked = false;
    }

    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        if let Reply::Error { message, .. } = turn.reply {
            return Next::Fail { cause: Cause::Driver, message: format!("the server refused it: {message}") };
        }
        if self.asked {
            if self.is_other {
                self.counts.of_others.fetch_add(1, Relaxed);
            }
            return Next::Done { transaction: 0, counted: true };
        }
        if !self.is_other && self.pieces_left == 0 {
            self.counts.has_left.store(true, Relaxed);
            return Next::Leave;
        }
        self.asked = true;
        let sql = if self.is_other { "DO 1" } else { "LOAD DATA LOCAL INFILE 'any' INTO TABLE loaded" };
        whyso_wire::encode::query(turn.out, sql.as_bytes());
        let expects = Expects::Results(whyso_wire::RowFormat::Text);
        Next::Send(Command { kind: Kind::One(u16::from(self.is_other)), expects, captures: false })
    }

    fn local_file(&mut self, content: &mut Vec<u8>) -> bool {
        let of_others = self.counts.of_others.load(Relaxed);
        if !content.is_empty() {
            self.counts.is_gathered.store(true, Relaxed);
        }
        if self.pieces_left == PIECES {
            self.counts.before_first.store(of_others, Relaxed);
        }
        self.counts.until_last.store(of_others, Relaxed);
        self.pieces_left -= 1;
        (0..LINES_A_PIECE).for_each(|_| content.extend_from_slice(LINE));
        self.pieces_left > 0
    }
}

fn run(server: &Server, engine: EngineKind, compression: bool) -> (LevelOutcome, Arc<TransactionCounts>) {
    let mut spec = LoadSpec { engine, compression, ..LoadSpec::new(server.target(), 3, 1) };
    spec.loops = (engine != EngineKind::Threads).then_some(1);
    let kinds = vec!["load".to_string(), "do".to_string()];
    let counts = Arc::new(TransactionCounts::default());
    let work = Arc::new(Loads { kinds, counts: counts.clone() });
    let mut opened = Engine::open(&spec, work).unwrap();
    let mut level = opened.level_with(&LevelSpec::users(3)).unwrap();
    level.begin_measuring();
    let deadline = Instant::now() + Duration::from_secs(180);
    while level.failure().is_none() && !counts.has_left.load(Relaxed) {
        assert!(Instant::now() < deadline, "{engine}: nothing is loaded");
        std::thread::sleep(Duration::from_millis(50));
    }
    (level.stop(), counts)
}

#[test]
fn a_long_file_arrives_whole_while_others_have_their_turn() {
    let server = Server::start(&[]);
    for (engine, compression) in engines().into_iter().flat_map(|engine| [(engine, false), (engine, true)]) {
        server.sql("USE whyso; CREATE OR REPLACE TABLE loaded (n INT, words VARCHAR(200)) ENGINE=InnoDB");
        let (outcome, counts) = run(&server, engine, compression);
        assert_eq!(outcome.failure, None, "{engine}, compression {compression}");
        assert!(
            !counts.is_gathered.load(Relaxed),
            "{engine}: a piece is gone before the next one is asked for"
        );
        let meanwhile = counts.until_last.load(Relaxed) - counts.before_first.load(Relaxed);
        assert!(meanwhile > 0, "{engine}, compression {compression}: the others had no turn");
        let whole = format!("{}\t{}", PIECES * LINES_A_PIECE, 7 * PIECES * LINES_A_PIECE);
        assert_eq!(server.sql("SELECT COUNT(*), SUM(n) FROM whyso.loaded"), whole, "{engine}");
        assert_eq!(outcome.kinds[0].count, 1, "{engine}");
    }
}
