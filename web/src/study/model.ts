/** The data of the page of a study, as `crates/report/src/study/page.rs` writes them. */

export type Interval = [number, number];

export interface Sheet {
  title: string;
  head: string[];
  /** Columns of words, by their places; the others hold numbers. */
  words: number[];
  rows: { cells: string[]; muted: boolean }[];
  note: string;
}

/** A variant at one number of users. */
export interface Point {
  variant: string;
  tuning: string;
  users: number;
  mean: number;
  mean95: Interval | null;
  lowest: number;
  highest: number;
  starts: number;
  unstable: boolean;
}

export interface Comparison {
  users: number;
  place: string;
  label: string;
  against: string;
  ratio: number;
  t95: Interval | null;
  /** The smallest detectable ratio above 1. */
  seen: number | null;
  verdict: 'faster' | 'slower' | 'no_difference_found' | 'too_noisy_to_say';
  /** Its baseline is unstable: it means little. */
  muted: boolean;
  difference: string;
  interval: string;
  words: string;
}

export interface Place {
  /** Server and condition; empty where the study has one of each. */
  title: string;
  points: Point[];
  compared: Comparison[];
}

export interface Course {
  name: string;
  server: string;
  condition: string;
  label: string;
  users: number;
  block: number;
  moments: { at_s: number; measures: Record<string, number> }[];
  resized: { what: string; at_s: number }[];
}

export interface Curve {
  name: string;
  knob: string;
  starts: number;
  points: { value: number; ms: number; ms95: Interval | null; status: Record<string, number> }[];
}

export interface StudyHead {
  format: number;
  title: string;
  question: string;
  found: string[];
  starts_done: number;
  starts: number;
  pair: { differs: boolean; words: string; looks_like: string[]; sheet: Sheet } | null;
  /** What is compared, with its unit. */
  metric: string;
  matters_percent: number;
  /** What lies left and right of no difference. */
  sides: [string, string];
  variants: string[];
  baselines: string[];
  places: Place[];
  steps: Comparison[];
  courses: Course[];
  words: Record<string, string>;
  curves: Curve[];
  sheets: Sheet[];
  notes: string[];
  done: { block: number; pair: boolean; name: string; run: string; version: string; seconds: number }[];
}

const FORMAT = 1;

/** What the page holds, if it is that of a study. Throws for one of another version. */
export function studyOfPage(): StudyHead | null {
  const text = document.getElementById('whyso-study')?.textContent;
  if (text === null || text === undefined) return null;
  const head = JSON.parse(text) as StudyHead;
  if (head.format !== FORMAT) throw new Error(`This page holds data of format ${head.format}, and can show format ${FORMAT}.`);
  return head;
}
