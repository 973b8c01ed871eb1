/** What the Performance Schema counted, as `crates/report/src/pfs/page.rs` writes it. */

export interface PfsHead {
  levels: PfsLevel[];
  views: PfsView[];
}

export interface PfsLevel {
  /** The level's index; null: all of a recording in which no level ended. */
  level: number | null;
  /** What numbers are divided by; null where that was not recorded. */
  seconds: number;
  statements: number | null;
  transactions: number | null;
  /** Absent if the recording does not have the cost of the server's timers. */
  timing?: PfsTiming;
}

/** What timing cost over a level: CPU times in seconds over the whole window, null if the server does not report it. */
export interface PfsTiming {
  seconds: number;
  statements: number | null;
  /** What the server used; null where its process was not watched. */
  server_cpu_s: number | null;
  classes: PfsClassTiming[];
  cpu_s: number | null;
  cpu_s_if_all: number | null;
  /** What each timer would cost if it served every class. */
  timers: { name: string; overhead_cycles: number | null; cpu_s: number | null; cpu_s_if_all: number | null }[];
}

export interface PfsClassTiming {
  class: string;
  timer: string;
  /** True if it was read from the server; else it is taken from the manual. */
  timer_read: boolean;
  events: number;
  /** Of instruments that are timed. */
  timed_events: number;
  cpu_s: number | null;
  cpu_s_if_all: number | null;
}

export interface PfsView {
  name: string;
  /** Of the series that it was read from. */
  source: string;
  /** What a line is, such as "event". */
  line: string;
  about: string;
  /** Count and time, and nothing else. */
  of_events: boolean;
  columns: PfsColumn[];
  /** Place of the column that sorts the lines by default. */
  main: number;
  block: number;
}

export interface PfsColumn {
  name: string;
  metric: string;
  /** Times are in nanoseconds, a share is from 0 to 1. */
  quantity: 'count' | 'time' | 'bytes' | 'share';
  /** A level is divided by nothing. */
  is_level: boolean;
}

/** By column, over the whole window; null where the server does not count it. */
export type PfsRow = (number | null)[];

/** The lines of a view. */
export interface PfsLines {
  names: string[];
  idle_names: string[];
  /** Statements that only whyso's own connections executed. */
  observer_names: string[];
  /** Of digests, by name. */
  texts: Record<string, string>;
  /** Instances of the series that are drawn over time. */
  drawn: string[];
  levels: PfsLinesOfLevel[];
}

export interface PfsLinesOfLevel {
  /** By name; null where nothing was counted. */
  rows: (PfsRow | null)[];
  idle: (PfsRow | null)[];
  /** Of all lines but the idle ones. */
  total: PfsRow;
  /** How many lines have no row, and their sum. */
  left: number;
  left_row: PfsRow;
  idle_left: number;
  observer: (PfsRow | null)[];
  /** The share of whyso's own connections in the counted time, or in the count if there is no time; absent if none. */
  observer_share?: number;
  /** Of a statement that others executed, too: how many executions were whyso's own, by name. */
  own?: Record<string, number>;
}
