// Generated from Rust types: a test of the crate that has them writes this file with UPDATE_EXPECT=1.

/** An access log over a level's window. */
export type AccessLogTime = {
  /** Name of its file. */
  log: string;
  /** What was read of it: about the window. */
  seconds: number;
  /** Lines that are no requests in its format. */
  malformed: number;
  all: RequestKind;
  /** Kinds of requests: the one whose requests took the most time together is first. */
  kinds: Array<RequestKind>;
  /** Kinds that are left out, because their requests took less time. */
  left_out: number;
  /** Requests by the process that served them, where the log has that: the one with the most time is first. */
  processes: Array<ServingProcess>;
  /** The same requests as the tracer saw them; `None` where no recorded program is known to have answered them. */
  traced: TracedRequests | null;
};

/** Throughput of the level in which something was done, before, during and after it. */
export type ActionEffect = {
  text: string;
  /** Index of the level that was measured at that time; `None` where none was. */
  level: number | null;
  /** `None` where the part is too short to say, or not steady. */
  before: Estimate | null;
  /** From its begin until throughput was steady again, or the window's end. */
  during: Estimate | null;
  during_s: number;
  after: Estimate | null;
};

/** Something that was done during the run. */
export type ActionRecord = {
  /** As it was asked for, such as "SET GLOBAL innodb_io_capacity = 2000". */
  text: string;
  begin_ns: number;
  end_ns: number;
  /** Why it failed; empty where it did not. */
  error: string;
};

/** What a thread does on a CPU. */
export type Activity = "connect" | "parse" | "optimise" | "tables" | "table_open" | "scan" | "index_read" | "evaluate" | "aggregate" | "versions" | "sort" | "query_cache" | "index_change" | "row_locks" | "transaction" | "log" | "page_read" | "page_flush" | "purge" | "replication" | "network" | "spin" | "switching" | "allocation" | "other";

/** CPU time that the server's threads spent on one activity, per transaction, by sampled stacks. Threads that work in the background count, too: the activities add up to the server's CPU time, not to the part `cpu`. */
export type ActivityTime = {
  activity: Activity;
  ms: number;
  /** Share of the server's sampled CPU time, 0 to 1. */
  share: number;
  samples: number;
};

/** One instant on both clocks, and the boot that the monotonic one belongs to. */
export type Anchor = {
  monotonic_ns: number;
  wall_ns: number;
  /** `/proc/sys/kernel/random/boot_id`, empty where it can't be read. */
  boot_id: string;
};

/** What a run has shown. */
export type Answer = {
  /** What makes the result unusable, the most serious first; empty where it is usable. */
  doubts: Array<string>;
  /** Such as "Stops at 8 users". */
  extent: string;
  /** Throughput there, such as "1,392 tps"; empty where no level was measured. */
  rate: string;
  /** The response time there within which 95 % of the transactions stayed, such as "9 ms"; empty where that is not known. */
  p95: string;
  /** What bounds throughput, such as "locks"; empty where nothing was measured. */
  limit: string;
  /** The first suspects, the first one first. */
  causes: Array<AnswerCause>;
  /** Where the time of a request went, of each program that no other one asks; the result above is about the database behind them then. */
  requests: Array<AnswerRequest>;
  /** Whether most of the time of all these requests goes into something else than a database. */
  is_elsewhere: boolean;
};

/** One suspect in a few words. */
export type AnswerCause = {
  id: Cause;
  /** Such as "row locks on shop.stock (PRIMARY)". */
  words: string;
  /** Share of the response time, 0 to 1. */
  share: number;
  /** The level of that response time, such as "at 64 users"; empty where it is the one of the throughput. */
  at: string;
  class: SuspectClass;
  /** The statement that held it most often; empty where that is not known. */
  held_by: string;
  /** How often, such as "87 % of 412 samples"; empty where that is not known. */
  held_share: string;
  /** What is worth a try, or what to measure next where the cause is not known; empty where whyso knows nothing. */
  remedy: string;
  /** An estimate of throughput without the cause, such as "×1.3 to ×3"; empty where there is none. */
  gain: string;
};

/** Where most of the time of a request to a program went. */
export type AnswerRequest = {
  /** Such as "86 % of a request to apache2: waiting on locks in the database". */
  headline: string;
  /** Such as "apache2 answered 123 requests per second, in 64 ms in the mean". */
  result: string;
  /** What to look at next; empty where whyso knows nothing. */
  advice: string;
  /** What the longest part shows, where it has a name. */
  cause: TierCause | null;
};

/** Threads that apply what other nodes have changed, or those of a data node. */
export type Applier = {
  /** Name of the busiest. */
  name: string;
  /** Of how many. */
  threads: number;
  /** Share of the time in which it surely had something to do. It may have had more: waits on locks and for work look the same. */
  busy: number;
  /** Where that time went, by state, the largest share first. */
  states: Array<StateShare>;
};

/** What the threads that apply changes were found to do when they had something to do, by the server's own words. */
export type Applying = {
  /** Threads that were found, over all readings. */
  samples: number;
  /** Share of them that had something to do. */
  busy: number;
  /** Of these, the states that they were in, the most frequent first. */
  states: Array<StateShare>;
};

/** Transactions that become due in an open loop. */
export type ArrivalRate = { "per_second": number } | { "stages": string };

/** How arrivals of an open loop lie in time. */
export type Arrivals = "poisson" | "uniform";

/** How the schedule of an open loop was kept. */
export type ArrivalsResult = {
  /** Transactions that became due in the window. */
  due: number;
  due_per_s: number;
  /** Transactions due and not begun at the window's begin, at its end, and the most in between. */
  backlog_begin: number;
  backlog_end: number;
  backlog_max: number;
  /** The rate was kept up with: the backlog did not grow. */
  held: boolean;
  /** How late transactions began for which a user stood ready: the generator's own delay. */
  late_ms: Latency;
};

/** A timer of the server; its numbers are `None` where the machine lacks it. */
export type AvailableTimer = {
  name: string;
  /** Units in a second. */
  frequency: number | null;
  /** Units by which it goes forward at once. */
  resolution: number | null;
  /** CPU cycles that a reading takes at least. */
  overhead_cycles: number | null;
};

/** Where the time of a level's mean transaction went. `parts` and `unaccounted_ms` add up to `response_ms`. */
export type Budget = {
  /** Index of the level. */
  level: number;
  users: number;
  /** The best level once more. */
  repeat: boolean;
  /** Mean response time of a transaction, as the load generator measured it. */
  response_ms: number;
  /** Leaves in the order of [`Part::ALL`], a mean a transaction; 0 is listed, what was not measured is not. */
  parts: Array<PartTime>;
  /** What no leaf holds; below 0 where they hold more than the response time. */
  unaccounted_ms: number;
  /** Parts split by wait class, where stacks were sampled: the largest first within a part. Those of waits add up to their part; of `cpu` only what spun is listed. */
  classes: Array<ClassTime>;
  /** CPU time of all threads of the server by activity, where stacks were sampled: the largest first. */
  activities?: Array<ActivityTime>;
  /** `None` where no sample fell into a request. */
  cpu_split: CpuSplit | null;
  /** The answer had arrived and a CPU was idle, until the load generator's thread ran: a part of `client_delay`. */
  client_wakeup_ms: number;
  /** The server is on another machine: the budget stops at the wire. */
  remote: boolean;
  /** Something else loaded the server: requests stand in for transactions. */
  recorded: boolean;
  /** What a reader must know about these numbers, a sentence each. */
  notes: Array<string>;
};

/** Every cause that whyso can name. */
export type Cause = "cpu" | "runqueue" | "wakeup-latency" | "preempted-holder" | "spin" | "swap" | "redo-write" | "redo-flush" | "doublewrite" | "row-lock" | "deadlock" | "lock-sys" | "metadata-lock" | "mdl-map" | "grant-lock" | "table-lock" | "user-lock" | "kernel-inode-lock" | "auto-increment" | "buffer-pool-miss" | "page-flush" | "checkpoint" | "index-latch" | "page-latch" | "adaptive-hash" | "trx-sys" | "purge-lag" | "thread-concurrency" | "table-cache" | "query-cache" | "tmp-table-sort" | "full-scan" | "connection-churn" | "network" | "proxy" | "slow-reader" | "sleep" | "cpu-quota" | "binlog" | "semi-sync" | "flow-control" | "certification" | "ndb-cpu-bound" | "ndb-disk-buffer" | "ndb-pool" | "ndb-round-trips" | "noisy-neighbour" | "observer" | "generator" | "unsaturated" | "unknown";

/** Time of a part that was spent on one wait class: the part as it was counted, divided as the sampled stacks are. */
export type ClassTime = {
  part: Part;
  /** Such as "redo_flush"; empty for what no rule names. */
  class: string;
  ms: number;
  /** Samples, or waits, that it is based on. */
  count: number;
};

/** What the load generator itself used during the window. */
export type Client = {
  /** User and system CPU of the threads that drive the load. */
  cpu_s: number;
  cpu_us_per_query: number;
  /** Peak resident memory of the whole process so far. */
  max_rss_kb: number;
  /** The generator was the bottleneck. */
  saturated: boolean;
  /** Why it counts as saturated; empty where it does not. */
  saturated_why: string;
  /** Time that the load's threads were runnable and waited for a CPU, together. */
  run_delay_s: number;
  /** Mean time that answers waited in an event loop for their turn, in microseconds; 0 with threads. */
  answer_delay_us: number;
  threads: number;
  /** CPUs that the load's threads may run on. */
  cpus_allowed: number;
};

/** What a column counts. */
export type ColumnQuantity = "count" | "time" | "bytes" | "share";

/** Waits for row locks, and their time. */
export type CountedRowLocks = { waits: number, waited_s: number };

/** What experiments with CPUs are to give: a machine has no more CPUs than it has, and theirs is another question than what more of them would give. */
export type CpuGains = {
  /** The server may use every CPU of the machine, those of the load generator included; `None` where it may already. */
  every_cpu: Gain | null;
  /** Its CPUs work at twice the speed. */
  twice_the_speed: Gain | null;
};

/** `cpu` by mode, from samples of the threads that worked on requests: CPU accounting by ticks does not have it. */
export type CpuSplit = {
  samples: number;
  /** Share in user mode, 0 to 1, with its 95 % interval (E. B. Wilson's score interval, 1927). */
  user: Estimate;
};

/** Fractions of the machine's CPU time, 0 to 1; they add up to 1. */
export type CpuUse = { user: number, system: number, iowait: number, steal: number, idle: number };

/** Something that makes a result unusable. */
export type Doubt = {
  /** "drift", "generator", "unsteady", "cut-short", "other-load", "steal" or "no-result". */
  id: string;
  /** Begins in lower case and has no full stop. */
  text: string;
};

export type Drift = {
  users: number;
  first_per_s: number;
  repeat_per_s: number;
  /** repeat ÷ first. */
  ratio: number;
  /** The intervals of the two do not overlap; without intervals, they differ by more than 15 %. */
  significant: boolean;
};

/** How the instruments of one class are set. */
export type EffectiveClass = {
  class: string;
  instruments: number;
  enabled: number;
  /** Of those that are enabled. */
  timed: number;
};

/** How the setup tables are set, in numbers. */
export type EffectiveSetup = {
  instruments: number;
  enabled: number;
  /** Of those that are enabled. */
  timed: number;
  /** Those that are enabled. */
  consumers: Array<string>;
  /** "wait by CYCLE"; empty where the server has no such table. */
  timers: Array<string>;
  timers_there: Array<AvailableTimer>;
  /** By the first part of their names: "wait", "stage", "statement", "transaction", "idle", "memory", "error". */
  classes: Array<EffectiveClass>;
  /** Instruments that are timed, enabled or not; `None` in the oldest recordings. */
  timed_instruments: InstrumentNames | null;
};

/** One endpoint's share of a level. */
export type EndpointResult = {
  /** As "db1:3306". */
  address: string;
  transactions: number;
  transactions_per_s: number;
  errors: number;
  latency_ms: Latency;
  /** Of the whole level. */
  outages: Array<OutageResult>;
};

/** How the load was driven. */
export type EngineResult = {
  /** "threads", "epoll" or "io-uring"; empty where it was not recorded. */
  kind: string;
  /** Event loops, or threads. */
  loops: number;
  /** Why this one, in a sentence. */
  why: string;
  /** Completions that an event loop waits for at a time, where that was asked for; else 0. */
  min_complete: number;
  /** How long it waits for them at most. */
  min_complete_at_most_ns: number;
  /** How long it polls before it sleeps. */
  busy_poll_ns: number;
  /** Of its threads, where one was asked for, such as "batch"; else empty. */
  scheduling_policy: string;
};

/** A number with its 95 % interval, in one unit. */
export type Estimate = { value: number, low95: number, high95: number };

export type Evidence = { "is": "levels", quantity: string, levels: Array<number> } | { "is": "series", series: SeriesName, begin_ns: number, end_ns: number } | { "is": "fact", path: string, value: string };

export type Explanation = {
  /** One a level of the input, same order. */
  levels: Array<LevelVerdict>;
  peak: Peak | null;
  usl: UslFit | null;
  /** Per transaction from the best level to the last, most suspicious first. */
  growth: Array<Growth>;
  drift: Drift | null;
  /** One an action of the input, same order. */
  actions: Array<ActionEffect>;
  /** Where the time of transactions went: one a level that was traced, in the order of the levels. */
  budgets: Array<Budget>;
  /** Index of the level that the cause is asked about; `None` where nothing was measured. */
  about: number | null;
  /** What bounds throughput at that level; `None` where nothing was measured. */
  limit: Limit | null;
  /** Who is suspected at that level, the first suspect first. */
  suspects: Array<Suspect>;
  /** What may be the cause there by a setting, a version or a count, and was not measured. */
  possible?: Array<Possible>;
  /** What other CPUs would give at that level. */
  cpu_gains: CpuGains;
  /** What each node of the server's cluster did at that level; empty where it is in none that whyso knows. */
  nodes?: Array<NodeState>;
  /** Where the time of a request to each program went, and what it waited for in the programs and servers behind it. Those that no other one asks come first. */
  tiers?: Array<TierTime>;
  /** What access logs got at that level, where some were followed. */
  access_logs?: Array<AccessLogTime>;
  /** Recorded programs with several processes, and their memory. */
  workers?: Array<WorkerMemory>;
  /** Of processes that are no server's, where their threads' time went: one a level. */
  processes?: Array<ProcessTime>;
  /** The result in a sentence or two. It is the first finding's words, so the two can't contradict each other. */
  headline: string;
  /** What makes the result unusable; empty where it is usable. */
  unusable: Array<Doubt>;
  /** In reading order: what makes the result unusable, peak, regimes, cause, warnings, what was not measured. */
  findings: Array<Finding>;
};

/** One source file. */
export type FileText = {
  /** As the build has it. */
  file: string;
  /** Where it was read; empty where it was not found. */
  path: string;
  /** Of the whole file. */
  length: number;
  /** Number and text, ascending. */
  lines: Array<[number, string]>;
};

/** What threads of one role waited for on one file, in one way. States and roles are the names that the recording has: it may come from a version that knows others. */
export type FileWait = {
  path: string;
  /** "file_read", "file_write", "file_sync" or "kernel_lock". */
  state: string;
  /** Role of the threads, such as "connection". */
  role: string;
  count: number;
  /** Sum of the waits in the window. */
  ns: number;
};

/** One sentence of the result, with its evidence. */
export type Finding = {
  /** Stable and short, such as "peak", "regimes", "server-cpu-full", "generator-bottleneck". */
  id: string;
  text: string;
  evidence: Array<Evidence>;
};

/** What a column is based on. */
export type FlameColumn = {
  total_us: number;
  /** Half of the 95 % interval of the total. */
  half_us: number;
  /** Samples on CPUs, or waits that were chosen. */
  samples: number;
};

/** What the page's head holds of the stacks. */
export type FlameHead = {
  metrics: Array<string>;
  threads: Array<string>;
  modules: Array<string>;
  /** Name, and place of its module; the first one stands for all calls. */
  names: Array<[string, number]>;
  nodes: number;
  /** The block that holds each node's depth, and the place of its name. */
  block: number;
  /** Of how many nodes the time is in their callers', and the share of every column that each of them held less of. */
  folded: number;
  folded_below: number;
  /** The share of the stacks' time that whyso's own probes and questions took, 0 to 1. */
  observer_share: number;
  levels: Array<FlameLevel>;
  /** What filters work on; `None` where it is too much for a page. */
  samples: SamplesHead | null;
  /** Whether a build has the lines of its sources. */
  knows_lines: boolean;
  /** Where in the sources the calls were; absent where no build has them, and where samples are not separated so finely. */
  lines?: LinesHead;
};

export type FlameLevel = {
  /** The level's index; `None`: of another run, or all of a recording in which no level ended. */
  level: number | null;
  /** Its name where it is no level of this run. */
  name?: string;
  seconds: number;
  /** Of the window; 0 where there are none that could be compared with this run's. */
  transactions: number;
  /** The block that holds its columns: exclusive microseconds of every node. */
  block: number;
  /** A column a metric of each kind of threads, kind by kind. */
  columns: Array<FlameColumn>;
};

export type Form = "samples" | "envelope";

/** A recording's format. */
export type Format = number;

/** Bounds, not an estimate with an interval of confidence; 1 is no gain. */
export type Gain = { low: number, high: number };

/** One host's part of a load that several hosts sent. */
export type GeneratorResult = {
  host: string;
  users: number;
  transactions: number;
  transactions_per_s: number;
  errors: number;
  latency_ms: Latency;
  client: Client;
};

/** One quantity per transaction at the best level and at the last. */
export type Growth = {
  series: SeriesName;
  unit: string;
  best_users: number;
  last_users: number;
  best_per_transaction: number;
  last_per_transaction: number;
  /** last ÷ best; `None` where best is 0. */
  ratio: number | null;
  /** Per-transaction value at every level of the sweep, same order as the levels. */
  by_level: Array<number>;
  /** What the counter stands for as text; empty where that is not known. */
  meaning: string;
  /** Place in [`Explanation::growth`] of a counter that counts the same and stands before this one. A table shows both in one row. `None` for the first of them. */
  same_as?: number;
};

export type Head = {
  format: number;
  run: RunInfo;
  explanation: Explanation;
  answer: Answer;
  events: Array<RunEvent>;
  problems: Array<string>;
  /** What the reader must know about the samples, in plain words. */
  notes: Array<string>;
  /** Monotonic ns that the axes count from. */
  origin_ns: number;
  end_ns: number;
  cpu_by_level: Array<LevelCpu>;
  axes: Array<Place>;
  series: Array<SeriesHead>;
  /** Absent where nothing traced the server's threads. */
  threads?: ThreadsHead;
  /** Absent where nothing traced the server's threads. */
  timeline?: TimelineHead;
  /** Absent where no stacks were recorded. */
  flame?: FlameHead;
  /** Absent where no commands of clients were followed. */
  statements?: StatementsHead;
  /** Of each level; none where nobody looked who waits. */
  locks: Array<LocksHead>;
  /** Absent where nothing was read of the Performance Schema. */
  pfs?: PfsHead;
  /** What experiments showed of the run's suspects; none of a window. */
  proofs: Array<ProofHead>;
};

/** The statement that held an object most often while others waited for it. */
export type Holder = {
  /** Without its literals. */
  statement: string;
  /** Share of the samples of the object, 0 to 1. */
  share: number;
};

/** Another host's clock at one time of the recording's. */
export type HostClock = {
  t_ns: number;
  /** What the other clock showed more. */
  offset_ns: number;
  /** How much faster it was, in parts per 1,000,000,000. */
  drift_ppb: number;
  /** Times of the host are right within it. Nothing finer can be said of two hosts' times. */
  bound_ns: number;
  /** The smallest round trip of a question about it. */
  round_trip_ns: number;
};

/** Facts about the machine that whyso runs on. */
export type HostFacts = {
  hostname: string;
  kernel: string;
  os: string;
  cpu_model: string;
  sockets: number;
  cores: number;
  logical_cpus: number;
  memory_bytes: number;
  /** `/sys/devices/system/clocksource/…/current_clocksource`. */
  clocksource: string;
  /** "kvm", "none", …, as far as it can be found out. */
  virtualization: string;
  /** Its IP addresses that others can reach it at. */
  addresses?: Array<string>;
  /** File system and device that hold the server's data, where it is local. */
  data_filesystem: string;
  /** Anything else worth a line, such as the CPU governor or transparent huge pages. */
  other: { [key in string]: string };
};

/** Transactions that were due when a window ended, and had not ended. */
export type InFlight = {
  transactions: number;
  /** Since the oldest was due; 0 where there is none. */
  oldest_ms: number;
  /** Of an open loop, those that no user had begun. */
  not_begun: number;
  /** Those that were older than any transaction that ended in the window took. */
  older_than_ended: number;
};

/** Instruments by name. */
export type InstrumentNames = {
  /** Every name that begins so; the empty one stands for all. */
  beginnings: Array<string>;
  names: Array<string>;
};

/** Waits that an instrument counted. */
export type InstrumentWaits = {
  instrument: string;
  count: number;
  waited_s: number | null;
  /** Share of the time that requests waited for locks. */
  share_of_lock: number | null;
};

/** Whether a series counts up (rates are derived when read) or is a level. */
export type Kind = "counter" | "gauge";

export type Latency = {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
  /** Percentiles above this one, and the max, are lower bounds: something in flight when the window ended was older than all that had ended. `None`: all are exact. */
  lower_bounds_above?: number;
};

/** One level of load: a warm-up and a measured window. */
export type Level = {
  /** Position in the run, from 0. */
  index: number;
  users: number;
  purpose: Purpose;
  warmup: Window;
  /** Whether the warm-up saw a steady throughput before its bound. */
  warmup_steady: boolean;
  /** The measured window. The result is only of this. */
  window: Window;
  result: LevelResult;
  ended: RunEnd;
};

/** CPU of the machine and of the two processes during one level's measured window, as the explanation has it. */
export type LevelCpu = {
  level: number;
  /** Fractions of the machine's CPU time; `None` where it was not recorded. */
  machine: CpuUse | null;
  /** CPUs kept busy (CPU seconds per second) by the server's process. */
  server_cpus: number | null;
  /** CPUs kept busy by the load generator's threads. */
  client_cpus: number;
};

export type LevelResult = {
  /** Length of the measured window. */
  seconds: number;
  transactions: number;
  queries: number;
  errors: number;
  /** "1213 (40001)" → count. */
  errors_by_code: { [key in string]: number };
  /** Transactions that were begun again after a deadlock or a lock timeout. */
  retries: number;
  transactions_per_s: number;
  queries_per_s: number;
  /** Of a transaction, retries included. */
  latency_ms: Latency;
  /** Of a transaction's last, successful attempt. */
  service_ms: Latency;
  /** One a kind of transaction; empty where there is only one kind. */
  by_transaction: Array<TransactionResult>;
  by_statement: Array<StatementResult>;
  client: Client;
  /** Transactions that ended in each 100 ms of the window, in order. */
  bins_100ms: Array<number>;
  /** Name of the workload; empty in recordings that have only one. */
  workload: string;
  /** When transactions began. */
  pacing: Pacing;
  /** The percentiles that were asked for. */
  percentiles: Array<PercentileResult>;
  /** Only of transactions that needed more than one attempt, from their first. */
  retried_ms: Latency;
  /** Time that transactions lost to each error, retrying and reconnecting included, in milliseconds. */
  lost_ms_by_code: { [key in string]: number };
  /** Connections that were lost and made again, of the whole level. */
  reconnects: number;
  engine: EngineResult;
  /** Transactions that were to become due per second, where that was the same all the time. `None` in a closed loop. */
  rate_per_s: number | null;
  /** `None` in a closed loop. */
  arrivals: ArrivalsResult | null;
  endpoints: Array<EndpointResult>;
  /** One for each host that sent a part of the load; empty where one process sent all of it. */
  generators: Array<GeneratorResult>;
  /** What on the client's machine bounded the load, such as its local ports; empty where nothing did. */
  client_limit: string;
  /** One per requirement, in the order in which they were given. */
  slo: Array<SloResult>;
  /** Intervals that could not be read from the load in time. */
  intervals_lost: number;
  /** Clients' sessions by the server's process list; `None` where it was not read, or whyso itself was the load. */
  sessions?: SessionsResult;
  /** What was due and unanswered when the window ended; `None` where it was not recorded. */
  in_flight: InFlight | null;
  /** `None` where it was not recorded. */
  user_seconds: UserSeconds | null;
};

export type LevelVerdict = {
  index: number;
  users: number;
  /** Mean over the steady part of the window; over the whole window where no part is steady. */
  transactions_per_s: number;
  /** 95 %, within this one start of the server, autocorrelation respected. `None` where the window is too short to say, or not steady. */
  transactions_per_s_ci95: [number, number] | null;
  steadiness: Steadiness;
  regime: Regime;
  /** False where the number shows nothing about the server. */
  valid: boolean;
  /** Why it is not valid; empty where it is. */
  invalid_why: string;
  /** Why a part of the users' time is in no response time; empty where that is not so. */
  stuck?: string;
  /** CPU of the machine in the window; `None` where it was not measured. */
  cpu: CpuUse | null;
  /** CPUs that the server's process kept busy; `None` where it was not watched. */
  server_cpus: number | null;
  /** CPUs that the generator's threads kept busy. */
  client_cpus: number;
  /** What clients did that are neither the load nor whyso; `None` where nothing separates them from the load. */
  other_clients?: OtherClients;
};

/** What bounds throughput at a level. */
export type Limit = {
  id: Resource;
  /** Share of the mean response time that it holds, 0 to 1. */
  share: number;
  /** One sentence. */
  text: string;
};

export type LineHead = {
  tid: number;
  name: string;
  role: string;
  /** Its first bucket, and how many it has. */
  first: number;
  buckets: number;
};

/** What the page's head holds of lines. */
export type LinesHead = {
  nodes: number;
  /** The block that holds, in this order: - of each call: its depth, the place of its line, and its node in the tree of calls without lines; - of each line: the place of its function's name, the place of its file, and its number. Instead of a file, −1 stands for a build without lines, and −2 for a line that is left out to keep the page small. */
  block: number;
  /** The block that holds the files and their text, as JSON. */
  texts_block: number;
};

/** What those at the head of the queue executed most, and in which share of the samples. */
export type LockHolder = { statement: string | null, share: number };

/** What sort of lock a connection waits for. */
export type LockKind = "row" | "metadata" | "table" | "user" | "other";

/** Waits for locks on one object. */
export type LockObject = {
  lock: LockKind;
  object: string;
  index: string;
  mode: string;
  samples: number;
  share: number;
  waited_s: number | null;
  /** What those that waited executed most. */
  statement: string | null;
  held_by: LockHolder;
};

/** How well the lock tables were read. */
export type LockSnapshots = {
  taken: number;
  failed: number;
  last_good_s_before_end: number | null;
  last_took_ms: number | null;
  are_good: boolean;
  contradiction: string | null;
  /** Objections to the snapshots; empty where there are none. */
  text: string;
};

/** What the page's head holds of the lock waits of a level. */
export type LocksHead = {
  level: number | null;
  /** How many more lines each table would have. */
  left: Remainder;
  window: string;
  seconds: number;
  /** Snapshots of who waits. */
  looks: number;
  snapshots: LockSnapshots;
  /** By InnoDB; `None` where its counters were not read. */
  row_locks_counted: CountedRowLocks | null;
  /** `None` where requests were not traced. */
  requests_waited_s: number | null;
  objects: Array<LockObject>;
  instruments: Array<InstrumentWaits>;
  tables: Array<TableWaits>;
  not_measured: Array<string>;
};

/** Which number of a distribution of times is judged. */
export type Measure = "average" | "max" | { "percentile": number };

/** The part of a recording that is missing, for programs. */
export type Missing = "server_threads" | "requests" | "commands" | "thread_connections" | "connection_threads" | "stacks" | "wait_stacks" | "thread_stacks" | "function_names" | "performance_schema" | "instrument_waits" | "session_events" | "row_lock_waits" | "metadata_lock_waits" | "metadata_lock_tables" | "innodb_mutexes" | "other";

/** A node of a cluster, or a target that was recorded together with others. */
export type NodeFacts = {
  name: string;
  /** The machine that it runs on, where an agent recorded it; empty: it is not known, or there is only one. */
  host?: string;
  /** What it is for: "source", "replica", "member", "SQL node", "data node", "manager", "proxy"; "server" where it is in no cluster, and "program" of processes that are none of a server. */
  role: string;
  /** Host and port, or socket; empty for one that is no server. */
  endpoint: string;
  /** The load went to it. */
  is_loaded?: boolean;
  /** Its number among the nodes of NDB, by which `ndbinfo` names it. */
  ndb_id?: number;
  /** Where it takes clients on its machine, such as "tcp 80" or "unix /run/a.sock"; empty where that is not known. */
  listens?: Array<string>;
};

/** What a node of the cluster did over a level's window. */
export type NodeState = {
  name: string;
  /** What it is for: "source", "replica", "member", "SQL node", "data node", "manager", "proxy"; "server" where it is in no cluster, and "program" of processes that are none of a server. */
  role: string;
  /** The load went to it. */
  is_loaded: boolean;
  /** CPUs that its process kept busy, or its processes; `None` where it was not watched. */
  cpus: number | null;
  /** Statements that clients sent to it, per second. */
  statements_per_s: number | null;
  /** How far it was behind its source at most, in seconds; `None` where it has none. */
  behind_s: number | null;
  /** Of the source's log that it fetched, which share it executed; more than 1 where it catches up. By bytes. */
  executed: number | null;
  /** Galera: share of the time for which flow control let no transaction of the cluster commit. */
  paused: number | null;
  /** Galera: pauses that this node asked for, per second. */
  pauses_asked_per_s: number | null;
  /** Galera: changes that waited here to be applied, in the mean. */
  receive_queue: number | null;
  /** Galera: transactions of this node that were refused or ended because another node had changed the same rows, per second. */
  conflicts_per_s: number | null;
  /** NDB: share of the data memory that is in use. */
  memory_used: number | null;
  /** NDB: of requests for pages of disk data, the share that the buffer had. */
  page_hits: number | null;
  /** NDB: of its threads' CPU time, the share that the kernel took. */
  in_kernel: number | null;
  /** The busiest thread that applies changes of other nodes, or that works on a data node; `None` where none was traced. */
  applier: Applier | null;
  /** What its appliers were found to do, by the server; `None` where it showed none. */
  applying: Applying | null;
  /** Of a program: in which states its threads were, most of them first. */
  threads: Array<StateThreads>;
};

/** Something that was not measured. */
export type NotMeasured = {
  source: Missing;
  /** What is missing, for people. */
  what: string;
  /** Why, and what would change that; empty where `what` says it. */
  reason: string;
};

/** The answer for a window of a recording that is being written. */
export type NowHead = {
  window: Window;
  /** One, over the window. */
  levels: Array<Level>;
  explanation: Explanation;
  answer: Answer;
};

/** Nine digits of a number, and no more bytes than they take. */
export type Number = number;

/** What other clients did over a level's measured window. */
export type OtherClients = {
  /** Connections that had a request under way at some time of the window. */
  connections: number;
  /** Requests that were answered, per second. */
  requests_per_s: number;
  /** CPU time within their requests, as a share of the server's CPU time, 0 to 1. */
  cpu_share: number;
};

/** A time in which an endpoint could not be used. */
export type OutageResult = {
  /** When the first connection to it was lost (monotonic nanoseconds). */
  begin_ns: number;
  /** Until the first transaction on it ended well again; `None`: not within the level. */
  seconds: number | null;
};

/** When a user's next transaction begins. */
export type Pacing = {
  "loop": "closed";
  /** The pause; `None`: there is none. */
  think?: ThinkTime;
  /** How many users are at work, as `--stages` gives it; `None`: all of them. */
  stages?: string;
} | { "loop": "open", rate: ArrivalRate, arrivals: Arrivals } | { "loop": "recorded" };

/** One leaf of the budget. Leaves do not overlap. */
export type Part = "client_queue" | "connect" | "client_pause" | "client_cpu" | "client_delay" | "transit_in" | "wakeup" | "runqueue" | "cpu" | "lock" | "kernel_lock" | "file_read" | "file_write" | "file_sync" | "net_send" | "page_fault" | "sleep" | "other" | "transit_out" | "server_and_network";

export type PartTime = {
  part: Part;
  ms: number;
  /** The series that it is based on; empty where the load generator measured it itself. */
  series: Array<SeriesName>;
};

/** Where throughput peaks: an interval of users, not a point. */
export type Peak = {
  /** Users of the level with the highest throughput. */
  users: number;
  /** Numbers of users that may have the highest throughput, tested or not: up to the tested neighbours that surely do less. The upper end is `None` where no level with more users is known to do less: the peak may lie beyond all that were tested. */
  users_interval: [number, number | null];
  transactions_per_s: number;
  /** Why the interval is what it is, as text. */
  witnesses: Array<string>;
};

/** One percentile of a transaction's times. */
export type PercentileResult = {
  /** Above 0, at most 100. */
  percentile: number;
  latency_ms: number;
  service_ms: number;
  /** The latency is this or more: it is the age of something in flight. */
  is_lower_bound: boolean;
};

/** How the Performance Schema was set, and what was asked for. */
export type PerformanceSchema = {
  /** Preset of `--pfs`, such as "global"; `None`: nothing was asked for. */
  preset: string | null;
  /** Value of `--pfs-timing`, where it was given. */
  timing: string | null;
  /** The request as text; `None`: nothing was asked for. */
  asked: string | null;
  state: PfsState;
  /** How it was set, as text, such as "as the server had it: off"; empty in the oldest recordings. */
  words: string;
  /** `None`: the server was not read. */
  in_force: EffectiveSetup | null;
  /** SQL that set it. */
  statements: Array<string>;
  /** SQL of the changes that the server did not take in full. */
  not_taken: Array<string>;
  /** Why the server was not read; `None`: it was. */
  not_read: string | null;
};

/** Events of one class over a window, and what timing them cost. */
export type PfsClassTiming = {
  class: string;
  timer: string;
  /** The server's table setup_timers has it; otherwise it is the one that is documented for servers without it. */
  timer_read: boolean;
  events: number;
  /** Those of instruments that are timed. */
  timed_events: number;
  cpu_s: number | null;
  /** If every event were timed. */
  cpu_s_if_all: number | null;
};

export type PfsColumn = {
  name: string;
  metric: string;
  quantity: ColumnQuantity;
  /** A level is divided by nothing. */
  is_level: boolean;
};

/** What the page's head holds of the views. */
export type PfsHead = { levels: Array<PfsLevel>, views: Array<PfsView> };

export type PfsLevel = {
  level: number | null;
  /** What numbers are divided by. */
  seconds: number;
  statements: number | null;
  transactions: number | null;
  timing?: PfsTiming;
};

/** The lines of a view: a block of the page. */
export type PfsLines = {
  names: Array<string>;
  idle_names: Array<string>;
  /** Statements that only whyso's own connections executed. */
  observer_names: Array<string>;
  /** Of digests, by name. */
  texts: { [key in string]: string };
  /** Instances of the series that are drawn over time. */
  drawn: Array<string>;
  levels: Array<PfsLinesOfLevel>;
};

export type PfsLinesOfLevel = {
  /** By name; `None` where nothing was counted. */
  rows: Array<Array<Number | null> | null>;
  idle: Array<Array<Number | null> | null>;
  /** Of all lines but the idle ones. */
  total: Array<Number | null>;
  /** How many lines have no row, and their sum. */
  left: number;
  left_row: Array<Number | null>;
  /** How many idle ones have no row. */
  idle_left: number;
  observer: Array<Array<Number | null> | null>;
  /** The part, 0 to 1, that whyso's own connections have of what was counted: of the time if any was measured, otherwise of the executions. */
  observer_share?: number;
  /** Of a statement that others executed, too: how many executions were whyso's own, by name. */
  own?: { [key in string]: Number };
};

/** Whether a server's Performance Schema is on. */
export type PfsState = "compiled-out" | "off" | "on" | "unknown";

/** A timer, and what it would cost if it served every class. */
export type PfsTimerChoice = {
  /** Of the events that were timed. */
  cpu_s: number | null;
  /** Of all events. */
  cpu_s_if_all: number | null;
  name: string;
  /** Units of the timer in a second; `None` where the machine lacks it. */
  frequency: number | null;
  /** Units by which it goes forward at once. */
  resolution: number | null;
  /** CPU cycles that a reading takes at least. */
  overhead_cycles: number | null;
};

/** What timing cost over a window, and what it would have cost otherwise. CPU times are in seconds, over the whole window; `None` where the server does not say what its timers take. */
export type PfsTiming = {
  /** Length of the window. */
  seconds: number;
  statements: number | null;
  /** CPU time that the server used; `None` where its process was not watched. */
  server_cpu_s: number | null;
  /** Always the five that there are. */
  classes: Array<PfsClassTiming>;
  /** Of all classes together. */
  cpu_s: number | null;
  cpu_s_if_all: number | null;
  /** The server's timers in its order, and what each would cost if it alone served every class. */
  timers: Array<PfsTimerChoice>;
};

export type PfsView = {
  name: string;
  source: string;
  line: string;
  about: string;
  /** Count and time, and nothing else. */
  of_events: boolean;
  columns: Array<PfsColumn>;
  /** Place of the column that sorts the view unless the user chose another. */
  main: number;
  block: number;
};

/** Where in the blocks something lies. */
export type Place = { block: number, slot: number };

/** A cause that a setting, a version or a count points to, and that no measured time shows. It has no share, and never comes first. */
export type Possible = {
  id: Cause;
  /** One sentence: what points to it. */
  text: string;
  evidence: Array<Evidence>;
};

/** Where the time of all threads of the watched processes went in one window. */
export type ProcessTime = {
  /** Index of the level in the recording. */
  level: number;
  /** Length of the window. */
  seconds: number;
  /** Threads that lived, in the mean; `None` where they were not counted. */
  threads: number | null;
  /** Seconds by state, such as "kernel_lock", the most first. Together they are the threads' time. */
  states: Array<StateTime>;
  /** Waits by file, over all threads, the longest first; a folder's path ends in a slash. */
  files: Array<FileWait>;
};

/** A suspect that was tested, as the page shows it. Gains are multiples of the throughput. */
export type ProofHead = {
  cause: string;
  verdict: string;
  /** What was done. */
  words: string;
  /** What else that changed. */
  also: string;
  /** Why it was not tested; else empty. */
  why: string;
  /** Lowest and highest. */
  predicted?: [number, number];
  /** Value, and the ends of its 95 % interval. */
  measured?: [number, number, number];
  /** Per cent of the server's speed, and throughput there with the ends of its interval: where the measured gain is extrapolated. */
  slowed: Array<[number, number, number, number]>;
};

export type Purpose = "sweep" | "repeat" | "switch";

/** A machine that an agent recorded. */
export type RecordedHost = {
  name: string;
  /** The run's server is on it. */
  has_server?: boolean;
  facts: HostFacts;
  /** Its clock against this recording's: first at the start, then one each minute, last at the end. */
  clock: Array<HostClock>;
  /** What it recorded and could not hand over, in pieces. */
  lost: number;
  /** Why its part ends early, or is missing; empty where it is whole. */
  problem?: string;
};

export type Regime = "ramping_up" | "peak" | "degrading" | "unknown";

export type Remainder = { objects: number, instruments: number, tables: number };

/** Requests that have something in common, over a level's window. */
export type RequestKind = {
  /** Such as `GET /items/{}`. */
  name: string;
  requests: number;
  requests_per_s: number;
  /** Answers with a status from 400 to 499. */
  errors_4xx: number;
  /** Answers with a status from 500 to 599. */
  errors_5xx: number;
  /** Of the time of all requests, 0 to 1; `None` where the log has no durations. */
  share: number | null;
  /** `None` where no request has a duration; the same for those that follow. */
  mean_ms: number | null;
  p50_ms: number | null;
  p90_ms: number | null;
  p99_ms: number | null;
  max_ms: number | null;
};

/** One requirement, written as `p99=20ms` or, for one kind of transaction or of statement, as `new_order:p90=50ms`. Where both have a kind of this name, `transaction:new_order:p90=50ms` is that of the transaction. ``` use whyso_model::slo::Requirement; let required: Requirement = "point_select:p95=2ms".parse().unwrap(); assert_eq!(required.kind, "point_select"); assert!(required.is_of_transaction("point_select") && !required.is_of_all()); assert_eq!(required.to_string(), "p95 ≤ 2 ms"); assert!(required.holds(Some(1.9)) && !required.holds(Some(2.1))); ``` */
export type Requirement = {
  /** "transaction" for all of them, a kind of transaction (its name, or "transaction:" and its name), or a kind of statement. */
  kind: string;
  measure: Measure;
  /** Longest time that is allowed, in milliseconds. */
  required_ms: number;
};

/** A resource that transactions wait for, or a queue in front of one. */
export type Resource = "cpu" | "lock" | "disk" | "network" | "pool" | "nodes" | "client" | "none" | "unknown";

/** How a run or a level ended. */
export type RunEnd = { "how": "complete", at_ns: number } | { "how": "cut_short", at_ns: number, why: string };

/** Something that happened; drawn on every chart. */
export type RunEvent = {
  t_ns: number;
  host: string;
  /** "level_begin", "level_end", "error", "variable", "note", "action", "gap", … */
  kind: string;
  text: string;
};

/** The whole of `run.json`. Times are monotonic nanoseconds, see [`whyso_clock`]. */
export type RunInfo = {
  format: Format;
  id: string;
  /** Version of whyso that wrote the recording. */
  tool_version: string;
  /** The command line, with secrets masked. */
  command: Array<string>;
  /** The plan as it was asked for and as it was resolved. */
  spec: RunSpec;
  host: HostFacts;
  server: ServerFacts;
  /** What the run's server is in its cluster; `None` where it is in none that whyso knows. */
  node?: NodeFacts;
  /** The other nodes of the server's cluster. They were watched, too: a node's name is the host of its series. */
  nodes?: Array<NodeFacts>;
  /** Other machines that were recorded by agents: a machine's name is the host of its series. */
  hosts?: Array<RecordedHost>;
  /** First at the start, then one each minute, last at the end. */
  anchors: Array<Anchor>;
  levels: Array<Level>;
  /** One execution of each kind of statement that only reads, before the first level; empty where none was executed. */
  statement_work?: Array<StatementWork>;
  /** What was done to the server during the run, on request. */
  actions: Array<ActionRecord>;
  /** What was not measured, and why. */
  not_measured: Array<NotMeasured>;
  /** `None` during the run, and after a crash. */
  ended: RunEnd | null;
};

/** The plan of a run. What its command has no such option for is absent or empty. */
export type RunSpec = {
  /** Name of the workload; of a recorded server, the command that loads it. */
  workload: string | null;
  /** Something else than whyso loads what is recorded. */
  recorded: boolean;
  /** What the watched processes are called, where they are no server's. */
  process: string | null;
  /** Options of the workload, "name=value". */
  options: Array<string>;
  /** What the workload sends. */
  describe: string | null;
  tables: number | null;
  /** Rows of each table. */
  rows: number | null;
  /** Storage engine of the tables, such as "InnoDB". */
  table_engine: string | null;
  /** The caches were emptied before each level. */
  cold: boolean;
  seed: number | null;
  /** Users at each level, in order. */
  users: Array<number>;
  /** Transactions due per second at each level, in order. Empty: a closed loop. */
  rates_per_s: Array<number>;
  /** Length of a level's measured window; `None`: until something else ends it. */
  seconds: number | null;
  warmup_seconds_max: number | null;
  /** Time between two readings of a source. */
  interval_ms: number | null;
  /** Engine that was asked for, such as "auto" or "io-uring". */
  engine_asked: string | null;
  /** Event loops that were asked for; `None`: the engine chose. */
  loops_asked: number | null;
  /** At the first level. */
  pacing: Pacing | null;
  slo: Array<Requirement>;
  /** Settings that the server was started with, or that were set. */
  settings: Array<SettingReason>;
  server_cpus: Array<number>;
  /** How the server was bound to its CPUs, as text; empty where it was not. */
  server_cpus_words: string;
  client_cpus: Array<number>;
  /** CPUs that the load was bound to, as text; empty where it was not. */
  client_cpus_words: string;
  /** What the user should know of the server. */
  notes: Array<string>;
  /** `None`: not recorded. */
  performance_schema: PerformanceSchema | null;
  /** `None`: not recorded. */
  stacks: Stacks | null;
};

/** What the page's head holds of the samples. */
export type SamplesHead = {
  roles: Array<string>;
  /** The kernel's numbers and names of threads; none where they are not separated. */
  threads: Array<[number, string]>;
  statements: Array<string>;
  /** Where stretches of this run begin and end, monotonic ns: one more than stretches. Each part of another run is one more stretch, in their order. */
  edges_ns: Array<number>;
  /** Of each level of the head: its first stretch, and the one after its last. */
  levels: Array<[number, number]>;
  /** Windows begin and end at multiples of this number of seconds since the page's zero, and where measured windows do. */
  step_s: number;
  rows: number;
  /** The block that holds, in this order: - of each owner: its role, thread, connection and statement, NaN where one is not known; - of each row: its metric, owner, stretch, node, time in µs, root of its variance in µs, and number of samples or waits. Where calls are separated by line, the node is that of the tree of lines. */
  block: number;
  /** Nodes are those of the tree of lines. */
  lines: boolean;
  /** What is not separated, as a text; empty where everything is. */
  note: string;
};

export type SeriesHead = {
  axis: number;
  /** "samples": one value a time. "envelope": five slots, min, lower quartile, median, upper quartile, max of a bucket. */
  form: Form;
  /** The value never changed. */
  flat: boolean;
  /** Machine that the number is about: "client", "server", or a host name. */
  host: string;
  /** Sampler that read it, such as "status", "innodb_metrics", "cpu", "load". */
  source: string;
  /** The source's own name with the unit last where the name is ours, such as "Innodb_rows_read", "user_ns". */
  metric: string;
  /** Which one of several, such as "cpu0", "sda", "point_select"; empty where there is one only. */
  instance: string;
  kind: Kind;
  /** "ns", "bytes", "pages", "1" (a plain count), "ratio", … */
  unit: string;
  block: number;
  slot: number;
};

/** Names a series, as the recording does. */
export type SeriesName = { host: string, source: string, metric: string, instance: string };

/** Facts about the server under test. */
export type ServerFacts = {
  /** As the server reports it, such as "10.11.14-MariaDB-0+deb12u2". */
  version: string;
  version_comment: string;
  /** "MariaDB" or "MySQL". */
  flavor: string;
  /** Where it was reached, without the password. */
  endpoint: string;
  throw_away: boolean;
  pid: number | null;
  /** CPUs that the server may run on, where it is local. */
  cpus: Array<number>;
  /** Every global variable at the start, with the values of credentials masked. */
  variables: { [key in string]: string };
  /** Variables whose value at the end differs from the start: name → value at the end. */
  variables_changed: { [key in string]: string };
};

/** A process that served requests by the log. */
export type ServingProcess = {
  /** Its number in the log; "other" for those that had no line of their own. */
  pid: string;
  /** The recorded program that it is of; `None` where none has this process. */
  program: string | null;
  requests: number;
  mean_ms: number | null;
};

/** Clients' sessions, as samples of the server's process list show them. whyso's own are left out. */
export type SessionsResult = {
  /** Times that the process list was read. */
  looks: number;
  /** Sessions in a statement, on average. */
  active_mean: number;
  /** Connections of clients, on average. */
  clients_mean: number;
};

/** A setting of the server, and why it was set. */
export type SettingReason = {
  name: string;
  value: string;
  /** Empty, or [`SettingReason::ASKED`] and more, where the user asked for it. */
  why: string;
};

/** Single waits and samples. */
export type SinglesHead = {
  /** Wait classes; the first one stands for none. */
  classes: Array<string>;
  functions: Array<string>;
  /** Place of the class, then of functions, the innermost first. */
  sites: Array<Array<number>>;
  count: number;
  /** The block that holds, in this order: - by thread, how many it has; - of each, by thread and time: its end in µs since the page's zero, and the place of its state; - of each: its length and weight in µs, its site, the thread that woke it, and that thread's site. A sample on a CPU has no length. NaN stands for none. */
  block: number;
  /** What was left out, in plain words; empty where nothing was. */
  note: string;
};

/** One requirement of a service level, and what was measured. */
export type SloResult = {
  /** "transaction", or a kind of transaction or of statement. */
  kind: string;
  /** "avg", "max", or a percentile such as "p99". */
  measure: string;
  required_ms: number;
  /** `None` where nothing of this kind was measured. */
  measured_ms: number | null;
  /** The measured value is this or more: it is the age of something in flight. */
  is_lower_bound: boolean;
  mean_ms: number;
  p90_ms: number;
  max_ms: number;
  held: boolean;
};

/** The text of the sources that the page has, and how it was chosen. */
export type SourceTexts = {
  files: Array<FileText>;
  around: number;
  lines_max: number;
  /** Number of lines with time that have no text although their file was read. It would have been too much for a page. */
  without: number;
};

/** How stacks of the server's threads were sampled. */
export type Stacks = "none" | "light" | "full";

/** Share of a thread's time in one state. */
export type StateShare = {
  /** Such as "file_sync". */
  state: string;
  share: number;
};

/** How many threads of a program were in one state, in the mean. */
export type StateThreads = {
  /** Such as "kernel_lock". */
  state: string;
  threads: number;
};

/** Time in one state. */
export type StateTime = { state: string, s: number };

export type StatementResult = {
  /** Such as "point_select" or "commit". */
  kind: string;
  count: number;
  errors: number;
  rows: number;
  latency_ms: Latency;
  /** Of those that were answered with an error. */
  error_ms: Latency;
};

export type StatementRow = {
  command: string;
  /** What the command says; empty where it says nothing. */
  statement: string;
  count: number;
  /** By metric; null where it is known of no command, or there is no such count. */
  sums: Array<number | null>;
  /** By metric: of how many commands. */
  known: Array<number>;
  mean_ns: number;
  /** Not of all together. */
  p95_ns: number | null;
  max_ns: number;
};

/** What the server did for one execution of a statement, alone and with warm caches, by its own counts for the session. */
export type StatementWork = {
  /** Kind of statement, as in [`LevelResult::by_statement`]. */
  kind: string;
  /** From sending it to the end of its answer. */
  seconds: number;
  rows_sent: number;
  /** Rows that were read from tables, also from temporary ones. */
  rows_read: number;
  rows_sorted: number;
  /** Rows that were entered into temporary tables. */
  rows_in_temporary_tables: number;
  /** Rows that were read and met no condition, by the server's analysis of an execution; `None` where the server has none. */
  rows_rejected: number | null;
};

/** What the page's head holds of statements. */
export type StatementsHead = {
  /** Names of the metrics whose sums there are; times in nanoseconds. */
  metrics: Array<string>;
  /** How many of those, from the first, are times. */
  times: number;
  /** What following them cost, as a text. */
  cost: string;
  levels: Array<StatementsOfLevel>;
};

export type StatementsOfLevel = {
  level: number | null;
  seconds: number;
  own_left_out: number;
  total: StatementRow;
  rows: Array<StatementRow>;
  /** How many more statements there were, and how many commands those were. */
  left: number;
  left_count: number;
};

/** Whether throughput stayed the same over a window. */
export type Steadiness = { "is": "steady" } | { "is": "unstable_from", s: number } | { "is": "trend", from_per_s: number, to_per_s: number } | { "is": "still_warming" } | { "is": "too_short" };

/** Something that may keep the server from going faster. */
export type Suspect = {
  id: Cause;
  /** Share of the mean response time that was measured to be its own, 0 to 1. */
  share: number;
  /** How the share came to be known. */
  class: SuspectClass;
  /** An estimate of throughput without it, as a multiple of what it is, with the same users; `None` where the evidence gives no bounds. */
  predicted_gain: Gain | null;
  /** What was waited for, where samples show that. */
  object?: SuspectObject;
  evidence: Array<Evidence>;
  /** One sentence. */
  text: string;
};

/** How the time that a suspect holds came to be known; the surest first. */
export type SuspectClass = "measured" | "sampled" | "inferred";

/** What the waits of a suspect were for, by samples of the connections that waited. */
export type SuspectObject = {
  /** Such as "shop.stock (PRIMARY)". */
  name: string;
  /** Share of the samples of its kind of lock, 0 to 1. */
  share: number;
  /** Connections that were found waiting for it, each counted in each snapshot. */
  samples: number;
  /** `None` where those that held it were between statements, or are not known. */
  holder?: Holder;
};

/** Locks and rows of a table, as the SQL layer counts them. */
export type TableWaits = { table: string, locks: number, locks_s: number, rows: number, rows_s: number };

/** The pause between a user's transactions. */
export type ThinkTime = {
  /** Mean, in milliseconds. */
  mean_ms: number;
  /** Pauses vary exponentially around the mean; else they are all alike. */
  is_exponential: boolean;
};

export type ThreadHead = { tid: number, name: string, role: string };

/** What the page's head holds of the threads. */
export type ThreadsHead = {
  states: Array<string>;
  /** Times of the snapshots, monotonic ns. */
  t_ns: Array<number>;
  unit_ns: number;
  list: Array<ThreadHead>;
  statements: Array<string>;
  /** The block that holds one column per state, then requests, connections and statements, over thread and snapshot. */
  block: number;
  /** What was left out, in plain words; empty where nothing was. */
  note: string;
};

/** What most of a request's time shows, by measured time. */
export type TierCause = "worker-pool" | "keepalive-idle" | "upstream" | "event-loop" | "session-files" | "log-file" | "ephemeral-ports" | "delayed-ack";

/** A file that threads of a tier waited for. */
export type TierFile = {
  /** A folder's ends in a slash. */
  path: string;
  /** Of the part's time, 0 to 1, at least: other waits of the program's threads may have been for the file, too. */
  share: number;
};

/** A line of the nested budget. Those without lines below them add up to the whole. */
export type TierLine = {
  /** 0: the page that users waited for, where that is known, or else the request to the first tier. Each server behind is one deeper. */
  depth: number;
  /** The tier whose time it is. */
  tier: string;
  /** What its threads did; `None` of a line that is no part of a tier's own. */
  part: Part | null;
  text: string;
  /** For each request to the first tier. */
  ms: number;
  /** Of the line at depth 0, 0 to 1. */
  share: number;
  /** Lines below divide it. */
  is_divided: boolean;
  /** It is the wait for a server that was not recorded. */
  is_unrecorded: boolean;
};

/** A part of a request's time. */
export type TierPart = {
  part: Part;
  ms: number;
  /** The file or folder that its threads waited for most in this way; `None` where that is not known. */
  file: TierFile | null;
};

/** A program or a database server that answers requests, over a level's window. */
export type TierTime = {
  name: string;
  /** A database server: its requests are commands. */
  is_database: boolean;
  /** Where it takes clients on its machine, such as "tcp 80". */
  listens: Array<string>;
  /** No other tier of the recording asks it. */
  is_first: boolean;
  /** The level, such as "64 users"; empty where the recording has one only. */
  level: string;
  /** Requests that it answered. */
  requests: number;
  requests_per_s: number;
  /** Mean time of a request, from its arrival to the end of its answer. */
  mean_ms: number;
  /** How long the users of a recorded load on a site waited for it, in the mean; `None` where that is not known. */
  page_ms: number | null;
  /** What is left of its mean time, with its sign. */
  unaccounted_ms: number;
  /** Its own part of a request, the longest first. Requests that waited to be picked up are `transit_in`. */
  parts: Array<TierPart>;
  /** What threads that answer requests did outside of them, for each request, such as writing a log after the answer: work on CPUs, files, and locks inside the kernel; the longest first. Threads that have ended are missing. Empty where that is not known. */
  after: Array<TierPart>;
  /** Servers behind it that a request waited for, the longest wait first. */
  upstreams: Array<UpstreamTime>;
  /** Share of its requests whose thread worked on others meanwhile, 0 to 1. */
  interleaved: number;
  /** Share of its requests whose arrival was not seen, 0 to 1: their wait to be picked up is missing. */
  unseen: number;
  /** Its threads, in the mean; 0 where they were not counted. */
  threads: number;
  /** Threads that waited for the next request on a connection that stays open, in the mean. */
  kept_threads: number;
  /** Connections that waited in its listeners' accept queues, in the mean of samples; `None` where these were not read. */
  accept_queue: number | null;
  /** Where a request's time went over this tier and all behind it; empty of a tier that another one asks. */
  lines: Array<TierLine>;
  /** Which line takes most of the time, of those that no others divide. */
  longest: number | null;
  /** What that line shows, where it has a name. */
  cause: TierCause | null;
};

/** What the page's head holds of the timeline. */
export type TimelineHead = {
  states: Array<string>;
  /** Where buckets begin and end, monotonic ns: one more than buckets. */
  edges_ns: Array<number>;
  list: Array<LineHead>;
  /** The block that holds, over all cells thread by thread: - which states have time, one bit each; - of each state, the whole milliseconds of those cells in which it has some. */
  block: number;
  singles: SinglesHead | null;
  /** What was merged or left out, in plain words; empty where nothing was. */
  note: string;
};

/** What the tracer saw of a program that wrote the log. */
export type TracedRequests = {
  program: string;
  requests_per_s: number;
  /** From a request's arrival to the end of its answer. */
  mean_ms: number;
  /** The program was chosen because processes of the log are its own; else because no other program takes requests from clients. */
  is_by_process: boolean;
};

/** One kind of transaction; times as those of all of them. */
export type TransactionResult = {
  /** Its name, such as "new_order". */
  kind: string;
  transactions: number;
  transactions_per_s: number;
  latency_ms: Latency;
  /** Of its latency, the time that 90 of 100 did not exceed; may be a lower bound, as the latency's. */
  p90_ms: number;
  service_ms: Latency;
};

/** What a request waited for a server behind. */
export type UpstreamTime = {
  /** Where that listens, such as "tcp 3306" or "unix /run/php/fpm.sock". */
  address: string;
  /** Its name, where it was recorded, too. */
  tier: string | null;
  /** Questions to it for each request. */
  asked: number;
  ms: number;
  /** Of a tier whose threads work on several requests by turns, for most of them: for how long answers had arrived before a thread received them. */
  late_ms: number;
};

/** What all users together did with the time of a window, in seconds. `ended`, `in_flight` and `outside` add up to the number of users times the window's length. */
export type UserSeconds = {
  /** Within the window, in transactions that ended in it. */
  ended: number;
  /** In transactions that were in flight when it ended. */
  in_flight: number;
  /** Between transactions: think times, pauses between arrivals, users that had nothing to do. */
  outside: number;
  /** Before the window, in transactions that ended in it; no part of the sum. */
  before: number;
  /** In pauses within transactions, which a script asks for; a part of `ended` and `in_flight`. 0 in recordings from before it was measured. */
  paused: number;
};

/** Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1)). */
export type UslFit = {
  /** Transactions per second of one user. */
  lambda: Estimate;
  /** Contention: the share that is serial. */
  sigma: Estimate;
  /** Crosstalk (coherency). */
  kappa: Estimate;
  /** Users at the fitted peak, √((1−σ)/κ); `None` where κ's interval contains 0: then the law needs no peak. */
  peak_users: number | null;
  /** Its 95 % interval; no upper end where the law needs no peak, or hardly one. `None` where it is not known. */
  peak_users_ci95: [number, number | null] | null;
  r_squared: number;
  /** Level indexes that the fit leaves outside its 95 % prediction band. */
  outside: Array<number>;
  /** (users, transactions per second) for drawing. */
  curve: Array<[number, number]>;
};

export type Window = { begin_ns: number, end_ns: number };

/** The workers of a program over a level's window, in the mean of the times at which they were looked at. */
export type WorkerMemory = {
  program: string;
  /** Processes that another process of the program started; else all. */
  workers: number;
  /** Memory that only one worker has, in the mean; `None` where it could not be read. */
  private_bytes: number | null;
  /** Of all workers together, with their parts of what they share with others; `None` where one's could not be read. */
  proportional_bytes: number | null;
};
