// Generated from Rust types: a test of the crate that has them writes this file with UPDATE_EXPECT=1.

export type BestLevel = { users: number, rate_per_s: number | null, transactions_per_s: number, latency_p95_ms: number };

export type EventList = { events: Array<RunEvent>, end_ns: number, live: boolean };

/** A line's head, see [`crate::encode`]. Its columns are times in seconds, values, and the four columns of a band. */
export type LineHead = {
  /** `None`: a sum. */
  number: number | null;
  count: number;
  band: boolean;
};

/** What comes before the binary columns of a chart's lines. */
export type LinesHead = { lines: Array<LineHead>, left: number };

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
  /** The first finding; null until it is worked out, empty if there is none. */
  verdict: string | null;
  notes: Array<string>;
  bytes: number;
  live: boolean;
  /** "complete", "going on", or why it is not whole. */
  ended: string;
};

/** Something that happened; drawn on every chart. */
export type RunEvent = {
  t_ns: number;
  host: string;
  /** "level_begin", "level_end", "error", "variable", "note", "action", "gap", … */
  kind: string;
  text: string;
};

export type RunList = {
  /** The folder that holds the runs. */
  folder: string;
  runs: Array<ListedRun>;
  /** Whether verdicts are still being worked out. */
  verdicts_coming: boolean;
};
