/** Where parts of a run lie on the wall's clock, in the reader's zone. Pure, except for the zone. */

import type { Head } from '../data/model.ts';
import type { Span } from './chartspec.ts';

/** What the axis of several runs counts. */
export type AxisKind = 'begin' | 'day' | 'wall';

export const DAY_S = 86_400;

/** A part of a run, in its own seconds, and where it lies on an axis: at x = t − `begin`. */
export interface Segment extends Span {
  begin: number;
  /** The day that it is of, as "Sat 28 Nov"; empty where the axis is not of days. */
  day: string;
}

/** Seconds that local time is ahead of UTC at a moment of Unix time. */
export type ZoneOffset = (unix_s: number) => number;
export const localOffset: ZoneOffset = (unix_s) => -60 * new Date(unix_s * 1000).getTimezoneOffset();

const DAY_NAME = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Unix time of a moment of a run, by the anchor before it; null of a run without anchors. */
export function unixTime(head: Pick<Head, 'run' | 'origin_ns'>, t: number): number | null {
  const { anchors } = head.run;
  const ns = head.origin_ns + t * 1e9;
  const anchor = anchors.findLast((candidate) => candidate.monotonic_ns <= ns) ?? anchors[0];
  return anchor ? (anchor.wall_ns + (ns - anchor.monotonic_ns)) / 1e9 : null;
}

/** Local midnight of the day of a moment, as seconds of local time. */
export function midnightOf(unix_s: number, zone: ZoneOffset = localOffset): number {
  return Math.floor((unix_s + zone(unix_s)) / DAY_S) * DAY_S;
}

/** The parts of a window, a part for each day, on an axis of the time of day. A change of the zone's offset also begins a part. */
export function daysOf(head: Pick<Head, 'run' | 'origin_ns'>, window: Span, zone: ZoneOffset = localOffset): Segment[] {
  const [first, last] = [unixTime(head, window.from), unixTime(head, window.to)];
  if (first === null || last === null) return [];
  const segments: Segment[] = [];
  for (let at = first; at < last; ) {
    const offset = zone(at);
    const midnight = midnightOf(at, zone);
    const end = Math.min(last, offsetChange(at, Math.min(midnight + DAY_S - offset, last), zone));
    const from = window.from + (at - first);
    segments.push({ from, to: window.from + (end - first), begin: from - (at + offset - midnight), day: DAY_NAME.format(new Date(midnight * 1000)).replace(',', '') });
    at = end;
  }
  return segments;
}

/** The first moment in which the zone's offset is another, or the end. */
function offsetChange(begin: number, end: number, zone: ZoneOffset): number {
  const offset = zone(begin);
  let [low, high] = [begin, end - 1e-3];
  if (high <= low || zone(high) === offset) return end;
  while (high - low > 1) {
    const middle = (low + high) / 2;
    if (zone(middle) === offset) low = middle;
    else high = middle;
  }
  return Math.round(high);
}

/** The same window on an axis that counts from `base`, a midnight in seconds of local time. */
export function onWall(head: Pick<Head, 'run' | 'origin_ns'>, window: Span, base: number, zone: ZoneOffset = localOffset): Segment | null {
  const first = unixTime(head, window.from);
  return first === null ? null : { ...window, begin: window.from - (first + zone(first) - base), day: '' };
}

/** A time of day, with as many parts as the step between two of them needs. */
export function timeOfDay(x: number, step_s: number): string {
  const day = ((x % DAY_S) + DAY_S) % DAY_S;
  const decimals = step_s < 0.1 ? 2 : step_s < 1 ? 1 : 0;
  const scale = 10 ** decimals;
  // Rounded as a whole, so that no minute has 60 seconds.
  const rounded = Math.round(day * scale) / scale;
  const [hours, minutes, seconds] = [Math.floor(rounded / 3600) % 24, Math.floor(rounded / 60) % 60, rounded % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  const head = `${two(hours)}:${two(minutes)}`;
  return step_s >= 60 ? head : `${head}:${seconds.toFixed(decimals).padStart(decimals === 0 ? 2 : 3 + decimals, '0')}`;
}

/** The text of a place on an axis that counts from `base`: the date at midnight, otherwise the time of day. */
export function wallText(x: number, step_s: number, base: number): string {
  const isMidnight = Math.abs(x / DAY_S - Math.round(x / DAY_S)) < 1e-6;
  return isMidnight || step_s >= DAY_S ? DATE.format(new Date((base + x) * 1000)) : timeOfDay(x, step_s);
}
