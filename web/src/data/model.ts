/** What the report's head holds, as `crates/report` writes it. Times are monotonic ns unless the name says otherwise. */

import type { PfsHead } from './pfs.ts';

export type Kind = 'counter' | 'gauge';

export interface SeriesName {
  host: string;
  source: string;
  metric: string;
  instance: string;
}

export interface SeriesHead extends SeriesName {
  kind: Kind;
  unit: string;
  axis: number;
  block: number;
  slot: number;
  form: 'samples' | 'envelope';
  flat: boolean;
}

export interface Window {
  begin_ns: number;
  end_ns: number;
}

export type Ended = { how: 'complete'; at_ns: number } | { how: 'cut_short'; at_ns: number; why: string };

export interface Latency {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
  /** Percentiles above this one, and the max, are lower bounds: ages of what was in flight. Missing where all are exact. */
  lower_bounds_above?: number | null;
}

export interface StatementResult {
  kind: string;
  count: number;
  errors: number;
  rows: number;
  latency_ms: Latency;
}

export interface TransactionResult {
  kind: string;
  transactions: number;
  transactions_per_s: number;
  latency_ms: Latency;
  p90_ms: number;
  service_ms: Latency;
}

export interface LevelResult {
  seconds: number;
  transactions: number;
  queries: number;
  errors: number;
  errors_by_code: Record<string, number>;
  retries: number;
  transactions_per_s: number;
  queries_per_s: number;
  latency_ms: Latency;
  service_ms: Latency;
  /** Empty, or missing in older recordings, where there is one kind of transaction. */
  by_transaction?: TransactionResult[];
  by_statement: StatementResult[];
  client: { cpu_s: number; cpu_us_per_query: number; max_rss_kb: number; saturated: boolean; saturated_why: string };
  engine: { kind: string; loops: number; why: string };
  bins_100ms: number[];
  /** When transactions began; missing in older recordings. */
  pacing?: Pacing;
  /** Transactions that were to be due a second, in an open loop of one rate. */
  rate_per_s?: number | null;
  arrivals?: { due: number; held: boolean } | null;
  /** Clients' sessions by samples of the server's process list, where something else loaded it. */
  sessions?: { looks: number; active_mean: number; clients_mean: number };
  /** What was due and unanswered when the window ended; missing in older recordings. */
  in_flight?: { transactions: number; oldest_ms: number; not_begun: number; older_than_ended: number } | null;
  /** What all users together did with the window's time; the first three add up to users × seconds. */
  user_seconds?: { ended: number; in_flight: number; outside: number; before: number } | null;
}

export interface Level {
  index: number;
  users: number;
  purpose: 'sweep' | 'repeat' | 'switch';
  warmup: Window;
  warmup_steady: boolean;
  window: Window;
  result: LevelResult;
  ended: Ended;
}

/** When transactions of a level began. */
export type Pacing =
  | { loop: 'closed'; think?: { mean_ms: number; is_exponential: boolean }; stages?: string }
  | { loop: 'open'; rate: { per_second: number } | { stages: string }; arrivals: 'poisson' | 'uniform' }
  | { loop: 'recorded' };

/** What a recording lacks, and why; `reason` is empty where `what` says it. */
export interface NotMeasured {
  source: string;
  what: string;
  reason: string;
}

/** Of the plan of a run, what the page shows. */
export interface RunSpec {
  workload: string | null;
  /** What the watched processes are called, where they are no server's. */
  process: string | null;
  performance_schema: { asked: string | null; words: string } | null;
}

export interface RunInfo {
  id: string;
  tool_version: string;
  command: string[];
  spec: RunSpec;
  host: {
    hostname: string;
    kernel: string;
    os: string;
    cpu_model: string;
    sockets: number;
    cores: number;
    logical_cpus: number;
    memory_bytes: number;
    clocksource: string;
    virtualization: string;
    data_filesystem: string;
    other: Record<string, string>;
  };
  server: {
    version: string;
    version_comment: string;
    flavor: string;
    endpoint: string;
    throw_away: boolean;
    pid: number | null;
    cpus: number[];
    variables: Record<string, string>;
    variables_changed: Record<string, string>;
  };
  anchors: { monotonic_ns: number; wall_ns: number }[];
  levels: Level[];
  not_measured: NotMeasured[];
  ended: Ended | null;
}

export type Regime = 'ramping_up' | 'peak' | 'degrading' | 'unknown';

/** `too_short`: nobody can say. Of a trend, means of the first and of the last tenth of the window. */
export type Steadiness =
  | { is: 'steady' }
  | { is: 'unstable_from'; s: number }
  | { is: 'trend'; from_per_s: number; to_per_s: number }
  | { is: 'still_warming' }
  | { is: 'too_short' };

export interface Verdict {
  index: number;
  users: number;
  transactions_per_s: number;
  transactions_per_s_ci95: [number, number] | null;
  steadiness: Steadiness;
  regime: Regime;
  valid: boolean;
  invalid_why: string;
  /** What clients did that are neither the load nor whyso; null where they can't be told from the load. */
  other_clients?: { connections: number; requests_per_s: number; cpu_share: number } | null;
  /** Why a part of the users' time is in no response time; missing where that is not so. */
  stuck?: string;
}

export interface Estimate {
  value: number;
  low95: number;
  high95: number;
}

export interface Growth {
  series: SeriesName;
  unit: string;
  best_users: number;
  last_users: number;
  best_per_transaction: number;
  last_per_transaction: number;
  ratio: number | null;
  by_level: number[];
  meaning: string;
  /** Place of a counter before this one that says the same: both stand in one row. */
  same_as?: number;
}

export type Evidence =
  | { is: 'levels'; quantity: string; levels: number[] }
  | ({ is: 'series'; series: SeriesName } & Window)
  | { is: 'fact'; path: string; value: string };

export interface Finding {
  id: string;
  text: string;
  evidence: Evidence[];
}

export interface ActionEffect {
  text: string;
  level: number | null;
  before: Estimate | null;
  during: Estimate | null;
  during_s: number;
  after: Estimate | null;
}

export type Part =
  | 'client_queue'
  | 'connect'
  | 'client_pause'
  | 'client_cpu'
  | 'client_delay'
  | 'transit_in'
  | 'wakeup'
  | 'runqueue'
  | 'cpu'
  | 'lock'
  | 'kernel_lock'
  | 'file_read'
  | 'file_write'
  | 'file_sync'
  | 'net_send'
  | 'page_fault'
  | 'sleep'
  | 'other'
  | 'transit_out'
  | 'server_and_network';

/** Where the time of a level's mean transaction went; the parts and the remainder add up to the response time. */
export interface Budget {
  level: number;
  users: number;
  repeat: boolean;
  response_ms: number;
  parts: { part: Part; ms: number; series: SeriesName[] }[];
  unaccounted_ms: number;
  notes: string[];
}

export interface Explanation {
  levels: Verdict[];
  /** Of the interval's upper end, null: the peak may lie beyond all levels. */
  peak: { users: number; users_interval: [number, number | null]; transactions_per_s: number; witnesses: string[] } | null;
  usl: {
    lambda: Estimate;
    sigma: Estimate;
    kappa: Estimate;
    /** Null where the law needs no peak. */
    peak_users: number | null;
    peak_users_ci95?: [number, number | null] | null;
    r_squared: number;
    outside: number[];
    curve: [number, number][];
  } | null;
  growth: Growth[];
  drift: { users: number; first_per_s: number; repeat_per_s: number; ratio: number; significant: boolean } | null;
  actions?: ActionEffect[];
  /** None where the run was not traced. */
  budgets?: Budget[];
  /** Index of the level that the cause is asked about. */
  about?: number | null;
  /** Of processes that are no server's: one a level. */
  processes?: ProcessTime[];
  headline: string;
  /** What makes the result unusable, the gravest first; empty where it is usable. */
  unusable: { id: string; text: string }[];
  findings: Finding[];
}

/** Where the time of all threads of the watched processes went. */
export interface ProcessTime {
  level: number;
  seconds: number;
  threads: number | null;
  states: { state: string; s: number }[];
  /** A folder's path ends in a slash. */
  files: { path: string; state: string; count: number; ns: number }[];
}

export interface LevelCpu {
  level: number;
  machine: { user: number; system: number; iowait: number; steal: number; idle: number } | null;
  server_cpus: number | null;
  client_cpus: number;
}

export interface RunEvent {
  t_ns: number;
  host: string;
  kind: string;
  text: string;
}

export interface Head {
  format: number;
  run: RunInfo;
  explanation: Explanation;
  events: RunEvent[];
  problems: string[];
  notes: string[];
  origin_ns: number;
  end_ns: number;
  cpu_by_level: LevelCpu[];
  axes: { block: number; slot: number }[];
  series: SeriesHead[];
  /** Absent where nothing traced the server's threads. */
  threads?: ThreadsHead;
  /** Absent where nothing traced the server's threads. */
  timeline?: TimelineHead;
  /** Absent where no stacks were taken. */
  flame?: FlameHead;
  /** Absent where no commands of clients were followed. */
  statements?: StatementsHead;
  /** Of each level; none where nobody looked who waits. */
  locks: LocksHead[];
  /** Absent where nothing was read of the Performance Schema. */
  pfs?: PfsHead;
}

export interface ThreadHead {
  tid: number;
  name: string;
  role: string;
}

/** The server's threads, and where their columns lie: see `crates/report/src/threads/columns.rs`. */
export interface ThreadsHead {
  states: string[];
  /** When they were looked at. */
  t_ns: number[];
  unit_ns: number;
  list: ThreadHead[];
  statements: string[];
  block: number;
  note: string;
}

/** A thread of the timeline: its first bucket, and how many it has. */
export interface LineHead extends ThreadHead {
  first: number;
  buckets: number;
}

/** The server's threads over time, and where their columns lie: see `crates/report/src/timeline/page.rs`. */
export interface TimelineHead {
  states: string[];
  /** Where buckets begin and end: one more than buckets. */
  edges_ns: number[];
  list: LineHead[];
  block: number;
  singles: SinglesHead | null;
  note: string;
}

/** Single waits and samples, and where their columns lie. */
export interface SinglesHead {
  /** Wait classes; the first one stands for none. */
  classes: string[];
  functions: string[];
  /** Place of the class, then of functions, the innermost first. */
  sites: number[][];
  count: number;
  block: number;
  note: string;
}

/** The server's stacks, merged into one tree, and where its columns lie: see `crates/report/src/flame/mod.rs`. */
export interface FlameHead {
  metrics: string[];
  /** Whose time has columns of its own: kinds of threads, and `observer`. */
  threads: string[];
  modules: string[];
  /** Name, and place of its module; the first one stands for all calls. */
  names: [string, number][];
  nodes: number;
  block: number;
  /** Of how many nodes the time is in their callers', and the share of every column that each of them held less of. */
  folded: number;
  folded_below: number;
  /** The share of the stacks' time that whyso's own probes and questions took, 0 to 1. */
  observer_share?: number;
  levels: FlameLevel[];
  /** What filters work on; null where it is too much for a page. */
  samples: SamplesHead | null;
  /** Whether some build tells the lines of its sources. */
  knows_lines: boolean;
  /** Absent where no build tells them, and where samples are not told apart so finely. */
  lines?: LinesHead;
}

/** Calls with their lines, and where their columns and the text of the sources lie: see `crates/report/src/flame/lines.rs`. */
export interface LinesHead {
  nodes: number;
  block: number;
  texts_block: number;
}

/** The text of the sources around the lines that have time: see `crates/report/src/flame/lines/text.rs`. */
export interface SourceTexts {
  files: {
    /** As the build has it. */
    file: string;
    /** Where it was read; empty where it was not found. */
    path: string;
    /** Lines of the whole file. */
    length: number;
    lines: [number, string][];
  }[];
  around: number;
  lines_max: number;
  /** Lines with time of files that were read, which are without their text. */
  without: number;
}

/** Samples by thread, stretch of time and statement, and where their columns lie: see `crates/report/src/flame/samples.rs`. */
export interface SamplesHead {
  roles: string[];
  /** Numbers and names; none where threads are not told apart. */
  threads: [number, string][];
  statements: string[];
  /** Where stretches of this run begin and end: one more than stretches. */
  edges_ns: number[];
  /** Of each level of the flame: its first stretch, and the one after its last. */
  levels: [number, number][];
  step_s: number;
  rows: number;
  block: number;
  /** Nodes of rows are those of the tree of lines. */
  lines: boolean;
  note: string;
}

export interface FlameLevel {
  /** The level's index; null: of another run, or all of a recording in which no level ended. */
  level: number | null;
  /** What it is called where no level of this run tells. */
  name?: string;
  /** Length of its window. */
  seconds: number;
  /** Of the window; 0 where there are none that could be compared with this run's. */
  transactions: number;
  block: number;
  /** A column a metric of each kind of threads, kind by kind. */
  columns: { total_us: number; half_us: number; samples: number }[];
}

/** The samples of one series. A bucket of an envelope has its least, quartiles and greatest value beside the median. */
export interface Column {
  /** Seconds since the head's origin, ascending. */
  t: Float64Array;
  /** NaN is a gap. For an envelope, the median. */
  v: Float64Array;
  band?: { min: Float64Array; q1: Float64Array; q3: Float64Array; max: Float64Array };
}

/** What clients asked of the server: see `crates/report/src/statements/page.rs`. */
export interface StatementsHead {
  /** What sums there are; the first `times` of them are times in nanoseconds. */
  metrics: string[];
  times: number;
  /** What following them cost, in words. */
  cost: string;
  levels: StatementsOfLevel[];
}

export interface StatementsOfLevel {
  /** The level's index; null: all of a recording in which no level ended. */
  level: number | null;
  seconds: number;
  /** Commands of whyso's own connections that are not among them. */
  own_left_out: number;
  total: StatementRow;
  rows: StatementRow[];
  /** How many more statements there were, and how many commands those were. */
  left: number;
  left_count: number;
}

export interface StatementRow {
  command: string;
  statement: string;
  count: number;
  /** By metric; null where it is known of no command, or there is no such count. */
  sums: (number | null)[];
  /** By metric: of how many commands. */
  known: number[];
  mean_ns: number;
  p95_ns: number | null;
  max_ns: number;
}

/** Lock waits over a level, as `whyso locks --json` has them: see `crates/report/src/locks`. */
export interface LocksHead {
  level: number | null;
  seconds: number;
  /** Times that it was looked who waits. */
  looks: number;
  /** How well the lock tables were read; `text` says what speaks against it, and is empty where nothing does. Missing in reports of older versions. */
  snapshots?: { taken: number; failed: number; last_good_s_before_end: number | null; last_took_ms: number | null; are_good: boolean; contradiction: string | null; text: string };
  row_locks_counted: { waits: number; waited_s: number } | null;
  requests_waited_s: number | null;
  objects: LockObject[];
  instruments: { instrument: string; count: number; waited_s: number | null; share_of_lock: number | null }[];
  tables: { table: string; locks: number; locks_s: number; rows: number; rows_s: number }[];
  not_measured: string[];
  /** How many more lines each table would have. */
  left: { objects: number; instruments: number; tables: number };
}

export interface LockObject {
  lock: string;
  object: string;
  index: string;
  mode: string;
  samples: number;
  share: number;
  waited_s: number | null;
  /** What those that waited executed most. */
  statement: string | null;
  /** What those at the head of the queue executed most, and of which share of the samples. */
  held_by: { statement: string | null; share: number };
}
