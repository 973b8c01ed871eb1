// Generated from Rust types: a test of the crate that has them writes this file with UPDATE_EXPECT=1.

/** A comparison, as numbers to draw and as words to show. */
export type ComparedHead = {
  users: number;
  /** Server and condition of a step; empty where the study has one of each. */
  place: string;
  label: string;
  against: string;
  ratio: number;
  t95: [number, number] | null;
  /** The smallest detectable ratio above 1. */
  seen: number | null;
  verdict: Verdict;
  /** Its baseline is unstable: it means little. */
  muted: boolean;
  difference: string;
  interval: string;
  words: string;
};

/** One cell at one number of users, as its start with the middle throughput went. */
export type Course = {
  /** Of the cell. */
  name: string;
  server: string;
  condition: string;
  /** Variant and tuning. */
  label: string;
  users: number;
  /** The start that is shown: its block, from 0. */
  block: number;
  moments: Array<Moment>;
  /** Changes during a run, and what they did. */
  resized: Array<SettingChange>;
};

export type Curve = {
  /** Of the cell. */
  name: string;
  knob: string;
  starts: number;
  /** In ascending order of the knob. */
  points: Array<CurvePoint>;
  /** Where the time changes for good, by at least what matters. */
  steps: Array<CurveStep>;
};

export type CurvePoint = {
  value: number;
  /** Geometric mean over the starts of an execution's time, in milliseconds. */
  ms: number;
  /** Its 95 % interval by Student's t over the logarithms; `None` with one start. */
  ms95: [number, number] | null;
  /** Means of the session's counters, by execution. */
  status: { [key in string]: number };
};

/** A step in a curve: between two neighbouring values of the knob. */
export type CurveStep = {
  /** The last value before it, and the first one after. */
  between: [number, number];
  /** Means of the times from the step before it to the one after it, in milliseconds. */
  before_ms: number;
  after_ms: number;
};

/** What a change during a run did. */
export type Dip = {
  /** Time of the change, in seconds. */
  at_s: number;
  /** Mean of the moments before it, ten at most. */
  before: number;
  /** The lowest value between the change and being back. */
  lowest: number;
  lowest_at_s: number;
  /** Mean of the last quarter of the time after it. */
  later: number;
  /** First moment, from the lowest one on, that reached 95 % of `before`, or of `later` where that is less; `None` where none did. */
  back_at_s: number | null;
};

/** A short part of a level. */
export type Moment = {
  /** Its middle, in seconds from the window's begin. */
  at_s: number;
  measures: { [key in string]: number };
};

export type PairHead = { differs: boolean, words: string, looks_like: Array<string>, sheet: Sheet };

/** Server and condition. */
export type PlaceHead = { title: string, points: Array<Point>, compared: Array<ComparedHead> };

/** A variant at one number of users. */
export type Point = {
  variant: string;
  tuning: string;
  users: number;
  mean: number;
  mean95: [number, number] | null;
  lowest: number;
  highest: number;
  starts: number;
  unstable: boolean;
};

export type Row = {
  cells: Array<string>;
  /** Its numbers mean little. */
  muted: boolean;
};

export type SettingChange = {
  /** What was set, such as "innodb_buffer_pool_size = 268435456". */
  what: string;
  /** In seconds from the level's begin. */
  at_s: number;
  /** Of the start that is shown; `None` where too little was measured around it. */
  dip: Dip | null;
  /** Of each start: how deep it fell in per cent, and in how many seconds it was back. */
  starts: Array<[number, number | null]>;
};

/** A table with its head. */
export type Sheet = {
  title: string;
  head: Array<string>;
  /** Columns of words, by their places; the others hold numbers. */
  words: Array<number>;
  rows: Array<Row>;
  /** What the reader has to know to read it; may be empty. */
  note: string;
};

/** A start that has come to its end. */
export type StartSummary = {
  /** From 0. Of the pair: the first one or the second. */
  block: number;
  pair: boolean;
  /** Name of the cell. */
  name: string;
  /** Name of its recording within the study's `runs`; empty where there is none. */
  run: string;
  /** As the server reports it. */
  version: string;
  /** How long it took, the server's start and the restoring of its data included. */
  seconds: number;
};

export type StudyHead = {
  format: number;
  title: string;
  question: string;
  found: Array<string>;
  starts_done: number;
  starts: number;
  /** The machine against itself; absent until both starts are done. */
  pair: PairHead | null;
  /** What is compared, as a text with its unit. */
  metric: string;
  matters_percent: number;
  /** What lies left and right of no difference. */
  sides: [string, string];
  /** Names of variants, in the order in which they take their colours. */
  variants: Array<string>;
  baselines: Array<string>;
  places: Array<PlaceHead>;
  /** Each of the study's steps against the one before. */
  steps: Array<ComparedHead>;
  courses: Array<Course>;
  /** Texts of the courses' measures, by name. */
  words: { [key in string]: string };
  curves: Array<Curve>;
  sheets: Array<Sheet>;
  notes: Array<string>;
  done: Array<StartSummary>;
};

export type Verdict = "faster" | "slower" | "no_difference_found" | "too_noisy_to_say";
