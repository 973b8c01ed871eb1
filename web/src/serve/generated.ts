// Generated from Rust types: a test of the crate that has them writes this file with UPDATE_EXPECT=1.

export type BestLevel = { users: number, rate_per_s: number | null, transactions_per_s: number, latency_p95_ms: number };

export type EventList = {
  events: Array<RunEvent>;
  /** Monotonic ns that the axes count from. */
  origin_ns: number;
  end_ns: number;
  live: boolean;
};

/** A line's head, see [`crate::encode`]. Its columns are times in seconds, values, and the four columns of a band. */
export type LineHead = {
  /** `None`: a sum. */
  number: number | null;
  count: number;
  band: boolean;
};

/** What comes before the binary columns of a chart's lines. */
export type LinesHead = { lines: Array<LineHead>, left: number };

export type ListedCause = {
  /** Its fixed name, such as "row-lock". */
  id: string;
  /** In a few words. */
  words: string;
  /** Share of the response time, 0 to 1. */
  share: number;
};

export type ListedRun = {
  id: string;
  /** The load's workload. If another program sent the load: the recorded process, or "recorded". */
  workload: string;
  server: string;
  host: string;
  /** Wall time in milliseconds; null if it was not recorded. */
  began_ms: number | null;
  seconds: number | null;
  levels: number;
  /** The level with the most transactions per second. */
  best: BestLevel | null;
  /** What the user calls it; empty if it has no name. */
  name: string;
  tags: Array<string>;
  /** What the user set, as "name=value". */
  set: Array<string>;
  /** Transactions per second of each level, in order; of at most 64. */
  per_s: Array<number>;
  /** The answer in a sentence; null until it is worked out, empty if there is none. */
  verdict: string | null;
  /** The first suspect; null until it is worked out, and if there is none. */
  cause: ListedCause | null;
  notes: Array<string>;
  bytes: number;
  live: boolean;
  /** "complete", "going on", or why it is not whole. */
  ended: string;
};

/** A study as the list shows it. */
export type ListedStudy = {
  /** The name of its folder. */
  id: string;
  title: string;
  question: string;
  workload: string;
  /** Versions of the servers that were started; before the first start, what the study names them. */
  servers: Array<string>;
  /** Wall time in milliseconds; null if the folder does not show it. */
  began_ms: number | null;
  /** Starts of servers that have ended, and those that are planned. */
  done: number;
  starts: number;
  /** The first sentence of what it has found; empty if there is none yet. */
  verdict: string;
};

/** Something that happened; drawn on every chart. */
export type RunEvent = {
  t_ns: number;
  host: string;
  /** "level_begin", "level_end", "error", "variable", "note", "action", "gap", … */
  kind: string;
  text: string;
};

/** What the user calls a run. */
export type RunLabels = {
  /** Empty: the run has no name. At most 100 characters. */
  name: string;
  /** At most 20, each of letters, digits and any of `-_.:=/+`, at most 40 characters. */
  tags: Array<string>;
};

export type RunList = {
  /** The folder that holds the runs. */
  folder: string;
  runs: Array<ListedRun>;
  /** Whether verdicts are still being worked out. */
  verdicts_coming: boolean;
};

export type StudyList = { studies: Array<ListedStudy> };
