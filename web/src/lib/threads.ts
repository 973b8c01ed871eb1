/** Where the server's threads spent their time, over any window: sums, order, words. Pure. */

import type { ThreadHead, ThreadsHead } from '../data/model.ts';
import { PARTS } from './budget.ts';

/** Every thread's time between snapshots. A cell is a thread at a snapshot: cell `thread * snapshots + snapshot`. */
export interface Threads {
  states: string[];
  list: ThreadHead[];
  statements: string[];
  /** The times of the snapshots, in seconds since the head's origin, ascending. */
  t: number[];
  /** By state: time summed up to each cell, in whole units, so that equal times are equal numbers. */
  running: Float64Array[];
  /** Seconds that a unit is long. */
  unit_s: number;
  requests: Float64Array;
  connection: Float64Array;
  statement: Float64Array;
}

/** A thread's time between two snapshots. */
export interface ThreadTime extends ThreadHead {
  /** Its place in the list. */
  place: number;
  connection: number | null;
  statement: string;
  requests: number;
  /** In all states: shorter than the window where it began or ended within it. */
  seconds: number;
  /** By state, as a fraction of its time. */
  shares: number[];
}

export function threadsOf(head: ThreadsHead, originNs: number, columns: Float64Array[]): Threads {
  const count = head.states.length;
  const column = (slot: number) => columns[slot] ?? new Float64Array(0);
  return {
    states: head.states,
    list: head.list,
    statements: head.statements,
    t: head.t_ns.map((ns) => (ns - originNs) / 1e9),
    running: head.states.map((_, state) => column(state)),
    unit_s: head.unit_ns / 1e9,
    requests: column(count),
    connection: column(count + 1),
    statement: column(count + 2),
  };
}

/** Returns the snapshots nearest to a window's ends, the first before the second; as `ThreadTable::covering` in `crates/series` has it. */
export function covering(t: number[], from: number, to: number): [number, number] | null {
  const last = t.length - 1;
  if (last < 1) return null;
  const nearest = (at: number) => t.reduce((best, value, place) => (Math.abs(value - at) < Math.abs((t[best] as number) - at) ? place : best), 0);
  const [first, second] = [nearest(from), nearest(to)];
  if (first < second) return [first, second];
  const isBefore = (t[first] as number) <= (from + to) / 2;
  const begin = isBefore ? Math.min(first, last - 1) : Math.max(first - 1, 0);
  return [begin, begin + 1];
}

/** Returns the threads that had time between two snapshots. */
export function between(threads: Threads, from: number, to: number): ThreadTime[] {
  const snapshots = threads.t.length;
  const found: ThreadTime[] = [];
  for (const [place, thread] of threads.list.entries()) {
    const begin = place * snapshots + from;
    const end = place * snapshots + to;
    const times = threads.running.map((sums) => (sums[end] as number) - (sums[begin] as number));
    const time = times.reduce((sum, value) => sum + value, 0);
    if (time <= 0) continue;
    const connection = lastKnown(threads.connection, begin + 1, end);
    const statement = lastKnown(threads.statement, begin + 1, end);
    found.push({
      ...thread,
      place,
      connection,
      statement: statement === null ? '' : (threads.statements[statement] ?? ''),
      requests: (threads.requests[end] as number) - (threads.requests[begin] as number),
      seconds: time * threads.unit_s,
      shares: times.map((ns) => ns / time),
    });
  }
  return found;
}

/** Returns the connection and the statement that the first present thread of these worked for at a time. */
export function workAt(threads: Threads, places: number[], t: number): { connection: number | null; statement: string } {
  const snapshots = threads.t.length;
  const after = threads.t.findIndex((candidate) => candidate >= t);
  const snapshot = after < 0 ? snapshots - 1 : after;
  for (const place of places) {
    const connection = threads.connection[place * snapshots + snapshot] ?? NaN;
    if (Number.isNaN(connection)) continue;
    const statement = threads.statement[place * snapshots + snapshot] ?? NaN;
    return { connection, statement: Number.isNaN(statement) ? '' : (threads.statements[statement] ?? '') };
  }
  return { connection: null, statement: '' };
}

function lastKnown(column: Float64Array, first: number, last: number): number | null {
  for (let cell = last; cell >= first; cell--) {
    const value = column[cell] as number;
    if (!Number.isNaN(value)) return value;
  }
  return null;
}

/** How many of these threads were in each state on average: `[snapshot][state]`, one fewer than snapshots. */
export function overTime(threads: Threads, places: number[]): number[][] {
  const snapshots = threads.t.length;
  return threads.t.slice(1).map((end, snapshot) => {
    const length = end - (threads.t[snapshot] as number);
    return threads.running.map((sums) => {
      let units = 0;
      for (const place of places) units += (sums[place * snapshots + snapshot + 1] as number) - (sums[place * snapshots + snapshot] as number);
      return (units * threads.unit_s) / length;
    });
  });
}

/** The shares of the threads' time together. */
export function sharesOf(rows: ThreadTime[], states: number): number[] {
  const seconds = rows.reduce((sum, row) => sum + row.seconds, 0);
  return Array.from({ length: states }, (_, state) =>
    seconds > 0 ? rows.reduce((sum, row) => sum + (row.shares[state] ?? 0) * row.seconds, 0) / seconds : 0,
  );
}

/** What the table is sorted by: a state by its place, or one of the other columns. */
export type Key = number | 'tid' | 'name' | 'role' | 'requests' | 'connection' | 'statement';

/** Rows in order. Those without a value come last either way. */
export function sorted(rows: ThreadTime[], key: Key, falls: boolean): ThreadTime[] {
  const value = (row: ThreadTime): number | string | null => (typeof key === 'number' ? (row.shares[key] ?? 0) : row[key]);
  const order = falls ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [first, second] = [value(a), value(b)];
    if (isNothing(first) || isNothing(second)) return Number(isNothing(first)) - Number(isNothing(second)) || a.tid - b.tid;
    const compared = typeof first === 'string' || typeof second === 'string' ? String(first).localeCompare(String(second)) : first - second;
    return order * compared || a.tid - b.tid;
  });
}

function isNothing(value: number | string | null): value is null | '' {
  return value === null || value === '';
}

/** States that some thread was in for a thousandth of its time or more, in order. */
export function statesShown(rows: ThreadTime[], states: string[]): number[] {
  return states.flatMap((_, state) => (rows.some((row) => (row.shares[state] ?? 0) >= 0.001) ? [state] : []));
}

export interface StateStyle {
  name: string;
  meaning: string;
  color: string;
}

/** Whether a thread in this state has nothing to do: it waits for its peer, or sleeps until there is work. */
export function isIdle(state: string | undefined): boolean {
  return state === 'net_receive' || state === 'idle';
}

const OTHERS: Record<string, StateStyle> = {
  net_receive: { name: 'net receive', meaning: 'the thread waited for its peer to send: usually idle', color: 'var(--idle)' },
  idle: { name: 'idle', meaning: 'the thread slept until there was work: on a condition, outside of any request', color: 'var(--asleep)' },
  aio: { name: 'aio', meaning: 'the thread waited for asynchronous input and output to complete', color: '#b08f5a' },
};

/** A state as the budget draws it, where it is a part of the budget. */
export function stateStyle(state: string): StateStyle {
  const other = OTHERS[state];
  if (other) return other;
  const part = PARTS[state as keyof typeof PARTS] ?? PARTS.other;
  return { name: state.replaceAll('_', ' '), meaning: part.meaning.replace("the server's thread", 'the thread'), color: part.color };
}
