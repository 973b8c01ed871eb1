/** Threads over time: how long each was in which state between any two times, and what of it is drawn. Pure. */

import type { LineHead, SinglesHead, TimelineHead } from '../data/model.ts';

/** Time by state that runs on from bucket to bucket, so that the time between two edges is a difference. */
export interface RunningSums {
  /** The first bucket, and how many there are from it on. */
  first: number;
  buckets: number;
  /** Milliseconds up to each edge: state `state` up to edge `edge` is at `offset + edge * states + state`. */
  ms: Uint32Array | Float64Array;
  offset: number;
}

export interface Lines {
  /** States that some thread was in, by their places in the head. */
  states: number[];
  /** Where buckets begin and end, in seconds since the page's zero. */
  edges: Float64Array;
  list: (LineHead & { running: RunningSums })[];
}

export function linesOf(head: TimelineHead, originNs: number, columns: Float64Array[]): Lines {
  const masks = Uint32Array.from(columns[0] ?? []);
  const states = head.states.flatMap((_, state) => ((columns[state + 1]?.length ?? 0) > 0 ? [state] : []));
  const ms = new Uint32Array((masks.length + head.list.length) * states.length);
  const edges = Float64Array.from(head.edges_ns, (ns) => (ns - originNs) / 1e9);
  let cells = 0;
  const list = head.list.map((line, place) => {
    const running: RunningSums = { first: line.first, buckets: line.buckets, ms, offset: (cells + place) * states.length };
    cells += line.buckets;
    return { ...line, running };
  });
  // State by state, as their columns lie.
  for (const [place, state] of states.entries()) {
    const column = columns[state + 1] as Float64Array;
    const bit = 1 << state;
    let [cell, read] = [0, 0];
    for (const { running } of list) {
      let sum = 0;
      let at = running.offset + place;
      for (let bucket = 0; bucket < running.buckets; bucket++, cell++) {
        if (((masks[cell] as number) & bit) !== 0) sum += column[read++] as number;
        at += states.length;
        ms[at] = sum;
      }
    }
  }
  return { states, edges, list };
}

/** Several threads together. */
export function together(lines: Lines, places: number[]): RunningSums {
  const states = lines.states.length;
  const buckets = lines.edges.length - 1;
  const ms = new Float64Array((buckets + 1) * states);
  for (const place of places) {
    const running = lines.list[place]?.running;
    if (!running) continue;
    const [first, count] = [running.first * states, running.buckets * states];
    for (let at = states; at < count + states; at++) ms[first + at] = (ms[first + at] as number) + (running.ms[running.offset + at] as number);
    // What it did stays in the sum after it has gone.
    for (let at = first + count + states; at < ms.length; at++) {
      ms[at] = (ms[at] as number) + (running.ms[running.offset + count + (at % states)] as number);
    }
  }
  return { first: 0, buckets, ms, offset: 0 };
}

/** The bucket at a time, with the part of it that lies before: 2.5 is the middle of bucket 2. */
export function bucketAt(edges: Float64Array, t: number): number {
  const last = edges.length - 1;
  if (t <= (edges[0] as number)) return 0;
  if (t >= (edges[last] as number)) return last;
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((edges[middle] as number) <= t) low = middle;
    else high = middle;
  }
  const from = edges[low] as number;
  return low + (t - from) / ((edges[high] as number) - from);
}

/** Adds milliseconds by state between two places of buckets to `into`; a bucket's time lies evenly in it. */
export function between(running: RunningSums, states: number, from: number, to: number, into: Float64Array): void {
  const begin = Math.min(Math.max(from - running.first, 0), running.buckets);
  const end = Math.min(Math.max(to - running.first, 0), running.buckets);
  if (end <= begin) return;
  const { ms, offset } = running;
  const low = Math.min(Math.floor(begin), running.buckets - 1);
  const high = Math.min(Math.floor(end), running.buckets - 1);
  const lowAt = offset + low * states;
  const highAt = offset + high * states;
  for (let state = 0; state < states; state++) {
    const a = ms[lowAt + state] as number;
    const b = ms[highAt + state] as number;
    const before = a + ((ms[lowAt + states + state] as number) - a) * (begin - low);
    const after = b + ((ms[highAt + states + state] as number) - b) * (end - high);
    into[state] = (into[state] as number) + after - before;
  }
}

/** Time by state between two times, in milliseconds. */
export function timeBetween(lines: Lines, running: RunningSums, from: number, to: number): Float64Array {
  const sum = new Float64Array(lines.states.length);
  between(running, lines.states.length, bucketAt(lines.edges, from), bucketAt(lines.edges, to), sum);
  return sum;
}

/**
 * Stacks a column's states from its foot over `high` pixels, and reports how much of each pixel each state covers. So the
 * thinnest state colours its part of a pixel. Returns false if there is no time.
 */
export function stackStates(ms: Float64Array, order: number[], high: number, cover: (state: number, pixel: number, part: number) => void): boolean {
  let total = 0;
  for (const value of ms) total += value;
  if (total <= 0) return false;
  let sum = 0;
  let from = 0;
  for (const state of order) {
    if ((ms[state] as number) <= 0) continue;
    sum += ms[state] as number;
    const to = Math.min(high, (sum / total) * high);
    for (let pixel = Math.floor(from); pixel < high && pixel < to; pixel++) {
      cover(state, pixel, Math.min(to, pixel + 1) - Math.max(from, pixel));
    }
    from = to;
  }
  return true;
}

/** Single waits and samples: those of thread `place` are from `begin[place]` on, before `begin[place + 1]`, by their end. */
export interface Singles {
  begin: Uint32Array;
  /** Seconds since the page's zero. */
  end: Float64Array;
  /** Places in the head's states. */
  state: Uint8Array;
  /** Seconds; 0 of a sample on a CPU. */
  length: Float64Array;
  weight: Float64Array;
  site: Uint32Array;
  /** NaN where there is none. */
  waker: Float64Array;
  wakerSite: Float64Array;
  /** By thread: the longest, in seconds. */
  longest: Float64Array;
  head: SinglesHead;
}

export function singlesOf(head: SinglesHead, columns: Float64Array[]): Singles {
  const column = (slot: number) => columns[slot] ?? new Float64Array(0);
  const counts = column(0);
  const begin = new Uint32Array(counts.length + 1);
  const longest = new Float64Array(counts.length);
  const length = column(3).map((us) => us / 1e6);
  for (let place = 0; place < counts.length; place++) {
    begin[place + 1] = (begin[place] as number) + (counts[place] as number);
    for (let at = begin[place] as number; at < (begin[place + 1] as number); at++) {
      longest[place] = Math.max(longest[place] as number, length[at] as number);
    }
  }
  return {
    begin,
    longest,
    length,
    end: column(1).map((us) => us / 1e6),
    state: Uint8Array.from(column(2)),
    weight: column(4).map((us) => us / 1e6),
    site: Uint32Array.from(column(5)),
    waker: column(6),
    wakerSite: column(7),
    head,
  };
}

/** Those of a thread that touch a stretch of time: from the first of these positions on, before the second; some of them may end after it. */
export function singlesIn(singles: Singles, place: number, from: number, to: number): [number, number] {
  const [low, high] = [singles.begin[place] ?? 0, singles.begin[place + 1] ?? 0];
  const first = (t: number) => {
    let [a, b] = [low, high];
    while (a < b) {
      const middle = (a + b) >> 1;
      if ((singles.end[middle] as number) < t) a = middle + 1;
      else b = middle;
    }
    return a;
  };
  return [first(from), first(to + (singles.longest[place] ?? 0))];
}

/** A row that is drawn: all threads of a role, or one thread. */
export interface Row {
  role: string;
  /** Places in the list: one of a thread. */
  places: number[];
  /** All threads of a role, of which there are several. */
  isRole: boolean;
  /** The only thread of its role. */
  isAlone: boolean;
  isOpen: boolean;
  top: number;
  height: number;
}

export interface Heights {
  role: number;
  /** Of a role whose threads are shown below it. */
  open: number;
  /** Of the only thread of a role. */
  alone: number;
  thread: number;
}

/** Rows from top to foot: of each role one, and the threads of open ones below them. */
export function rowsOf(lines: Lines, places: number[], open: ReadonlySet<string>, heights: Heights): Row[] {
  const roles = new Map<string, number[]>();
  for (const place of places) {
    const role = lines.list[place]?.role ?? '';
    const of = roles.get(role);
    if (of) of.push(place);
    else roles.set(role, [place]);
  }
  const rows: Row[] = [];
  let top = 0;
  const add = (row: Omit<Row, 'top'>) => {
    rows.push({ ...row, top });
    top += row.height;
  };
  // Those that work for clients first, then by name.
  const order = [...roles.keys()].sort((a, b) => Number(b === 'connection') - Number(a === 'connection') || a.localeCompare(b));
  for (const role of order) {
    const of = roles.get(role) ?? [];
    if (of.length === 1) {
      add({ role, places: of, isRole: false, isAlone: true, isOpen: false, height: heights.alone });
      continue;
    }
    const isOpen = open.has(role);
    add({ role, places: of, isRole: true, isAlone: false, isOpen, height: isOpen ? heights.open : heights.role });
    if (isOpen) for (const place of of) add({ role, places: [place], isRole: false, isAlone: false, isOpen: false, height: heights.thread });
  }
  return rows;
}

/** The place of the row at a height, −1 where there is none. */
export function rowAt(rows: Row[], y: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] as Row).top + (rows[middle] as Row).height <= y) low = middle + 1;
    else high = middle;
  }
  return low < rows.length && y >= (rows[low] as Row).top ? low : -1;
}

export interface Span {
  from: number;
  to: number;
}

/** A span that is `factor` as long, in which `at` stays where it is; within `whole`, and not shorter than `least`. */
export function zoomSpan(span: Span, at: number, factor: number, whole: Span, least: number): Span {
  const length = Math.min(whole.to - whole.from, Math.max(least, (span.to - span.from) * factor));
  const part = (at - span.from) / (span.to - span.from);
  return moveSpan({ from: at - part * length, to: at + (1 - part) * length }, 0, whole);
}

/** Moves a span by `by` seconds, within `whole`. */
export function moveSpan(span: Span, by: number, whole: Span): Span {
  const length = Math.min(span.to - span.from, whole.to - whole.from);
  const from = Math.max(whole.from, Math.min(whole.to - length, span.from + by));
  return { from, to: from + length };
}
