/** The Performance Schema's views as tables, and what differs between two levels, as `whyso pfs` has them. Pure. */

import type { PfsColumn, PfsLevel, PfsLines, PfsRow, PfsTiming, PfsView } from '../data/model.ts';
import { bytes, nanoseconds, number, percent, whole } from './words.ts';

export const PERS = ['second', 'statement', 'transaction'] as const;
export type Per = (typeof PERS)[number];

/** What numbers are divided by; null where that is not known, or nothing. */
export function divisorOf(level: PfsLevel, per: Per): number | null {
  const divisor = { second: level.seconds, statement: level.statements, transaction: level.transactions }[per];
  return divisor !== null && divisor > 0 ? divisor : null;
}

/** A column of the table that is shown. */
export interface ShownColumn {
  name: string;
  title: string;
  of: (row: PfsRow) => number | null;
  words: (value: number) => string;
}

export function columnsOf(view: PfsView, level: PfsLevel, total: PfsRow, per: Per): ShownColumn[] {
  return view.of_events ? eventColumns(level, total) : wideColumns(view, level, total, per);
}

/** Count and time side by side by all that they can be divided by. */
function eventColumns(level: PfsLevel, total: PfsRow): ShownColumn[] {
  const pers = PERS.filter((per) => divisorOf(level, per) !== null);
  const divided = (at: number, per: Per, factor: number) => (row: PfsRow) => over(row[at], divisorOf(level, per), factor);
  const suffix = (per: Per) => (per === 'second' ? 's' : per);
  const counts = pers.map((per): ShownColumn => ({ name: per === 'second' ? 'count/s' : `/${per}`, title: `how often per ${per}`, of: divided(0, per, 1), words: number }));
  const times = pers.map((per): ShownColumn => {
    const [unit, factor] = per === 'second' ? ['ms', 1e-6] : ['µs', 1e-3];
    return { name: `${unit}/${suffix(per)}`, title: `time of all threads together per ${per}`, of: divided(1, per, factor), words: number };
  });
  return [
    ...counts,
    ...times,
    { name: 'mean µs', title: 'time of one', of: (row) => over(row[1], row[0] ?? null, 1e-3), words: number },
    { name: 'of time', title: 'share of the time of all lines that are not idle', of: (row) => over(row[1], total[1] ?? null, 1), words: percent },
  ];
}

/** Columns that counted anything. */
function wideColumns(view: PfsView, level: PfsLevel, total: PfsRow, per: Per): ShownColumn[] {
  return view.columns.flatMap((column, at): ShownColumn[] => {
    if (at > 0 && column.quantity !== 'share' && !((total[at] ?? 0) > 0)) return [];
    const title = column.is_level ? column.name : `${column.name} per ${per}`;
    return [{ name: column.name, title, of: (row) => dividedIn(column, row[at], level, per), words: wordsOf(column) }];
  });
}

function over(value: number | null | undefined, divisor: number | null, factor: number): number | null {
  return value == null || divisor === null || divisor <= 0 ? null : (value / divisor) * factor;
}

/** A number of a column, divided unless it is a level. */
export function dividedIn(column: PfsColumn, value: number | null | undefined, level: PfsLevel, per: Per): number | null {
  return column.is_level ? (value ?? null) : over(value, divisorOf(level, per), 1);
}

/** A number of a column with its unit. */
export function wordsOf(column: PfsColumn): (value: number) => string {
  return { count: number, time: nanoseconds, bytes, share: percent }[column.quantity];
}

export interface PfsLine {
  name: string;
  /** Of a digest its text, else the name. */
  label: string;
  row: PfsRow;
}

/** The lines of a level whose name or text contains `text`, in any case, the most of a column first; where it is not known, last. */
export function linesOf(lines: PfsLines, place: number, column: ShownColumn | undefined, text: string, which: 'rows' | 'idle' | 'observer' = 'rows'): PfsLine[] {
  const level = lines.levels[place];
  const names = { rows: lines.names, idle: lines.idle_names, observer: lines.observer_names }[which];
  const rows = level?.[which] ?? [];
  const found = names.flatMap((name, at): PfsLine[] => {
    const row = rows[at];
    const line = row && { name, label: ownLabel(row, level?.own?.[name]) + (lines.texts[name] ?? name), row };
    return line && isLike(line, text) ? [line] : [];
  });
  const value = (line: PfsLine) => column?.of(line.row) ?? -Infinity;
  return found.sort((a, b) => byMost(value(a), value(b)));
}

/** How many of a line's executions are whyso's own; a client's only execution is not rounded away. */
function ownLabel(row: PfsRow, own: number | undefined): string {
  return own === undefined ? '' : `[whyso: ${whole(Math.floor(own))} of ${whole(Math.ceil(row[0] ?? 0))}] `;
}

function isLike({ name, label }: { name: string; label: string }, text: string): boolean {
  const part = text.toLowerCase();
  return part === '' || label.toLowerCase().includes(part) || name.toLowerCase().includes(part);
}

function byMost(a: number, b: number): number {
  return a === b ? 0 : b > a ? 1 : -1;
}

export interface PfsDifference {
  name: string;
  label: string;
  here: number | null;
  there: number | null;
  /** Null where a side does not count it. */
  difference: number | null;
}

/**
 * What differs in the column at `at`, the greatest difference first, whichever side it is on; what only one side counted is 0 on the other.
 * Nothing where a side lacks what is divided by.
 */
export function differencesOf(view: PfsView, lines: PfsLines, levels: PfsLevel[], [here, there]: [number, number], at: number, per: Per, text = ''): PfsDifference[] {
  const column = view.columns[at];
  const sides = [here, there].map((place) => ({ level: levels[place], rows: lines.levels[place]?.rows }));
  if (!column || sides.some(({ level, rows }) => !rows || !level || divisorOf(level, per) === null)) return [];
  const found = lines.names.flatMap((name, order): PfsDifference[] => {
    const rows = sides.map(({ rows }) => rows?.[order] ?? null);
    const line = { name, label: lines.texts[name] ?? name };
    if (rows.every((row) => row === null) || !isLike(line, text)) return [];
    const [a, b] = rows.map((row, side) => (row === null ? 0 : dividedIn(column, row[at], sides[side]?.level as PfsLevel, per))) as [number | null, number | null];
    return [{ ...line, here: a, there: b, difference: a === null || b === null ? null : a - b }];
  });
  const size = (difference: PfsDifference) => Math.abs((difference.here ?? 0) - (difference.there ?? 0));
  return found.sort((a, b) => byMost(size(a), size(b)));
}

/** A CPU time as milliseconds per second, and as a share of what the server used. */
interface Cost {
  perSecond: number | null;
  share: number | null;
  allPerSecond: number | null;
  allShare: number | null;
}

export interface TimingRow extends Cost {
  name: string;
  /** Empty in the total. */
  timer: string;
  /** A second. */
  events: number | null;
  perStatement: number | null;
  /** Share of the events that were timed. */
  timed: number | null;
}

/** What timing cost by class, the total last, and what each timer would cost if it served every class. */
export function timingRows(timing: PfsTiming): { rows: TimingRow[]; choices: (Cost & { name: string; overhead: number | null })[] } {
  const costs = (cost: { cpu_s: number | null; cpu_s_if_all: number | null }): Cost => ({
    perSecond: over(cost.cpu_s, timing.seconds, 1e3),
    share: over(cost.cpu_s, timing.server_cpu_s, 1),
    allPerSecond: over(cost.cpu_s_if_all, timing.seconds, 1e3),
    allShare: over(cost.cpu_s_if_all, timing.server_cpu_s, 1),
  });
  const row = (name: string, timer: string, events: number, timed: number): Omit<TimingRow, keyof Cost> => ({
    name,
    timer,
    events: over(events, timing.seconds, 1),
    perStatement: over(events, timing.statements, 1),
    timed: over(timed, events, 1),
  });
  const sum = (of: 'events' | 'timed_events') => timing.classes.reduce((sum, entry) => sum + entry[of], 0);
  return {
    rows: [
      ...timing.classes.map((entry): TimingRow => ({ ...row(entry.class, entry.timer, entry.events, entry.timed_events), ...costs(entry) })),
      { ...row('<Total>', '', sum('events'), sum('timed_events')), ...costs(timing) },
    ],
    choices: timing.timers.map((timer) => ({ name: timer.name, overhead: timer.overhead_cycles, ...costs(timer) })),
  };
}
