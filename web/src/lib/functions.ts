/** Functions on CPUs over time: which ones, how much of a window each had, and the outline of its area. Pure. */

import type { Column, SeriesHead } from '../data/model.ts';
import type { Span } from './desk.svelte.ts';
import { lowerBound } from './envelope.ts';

/** What `crates/report/src/over_time.rs` names these series. */
const SOURCE = 'functions';
const METRIC = 'on_cpus';
export const OTHERS = 'all others';

export interface FunctionSeries {
  /** Position in the head's series. */
  series: number;
  name: string;
  /** The file that holds it; empty where it is not known. */
  module: string;
}

/** The functions that the report holds over time, the one with the most time first, all others last; none where no stacks were recorded. */
export function functionSeries(series: Pick<SeriesHead, 'source' | 'metric' | 'instance'>[]): FunctionSeries[] {
  return series.flatMap((entry, place) => {
    if (entry.source !== SOURCE || entry.metric !== METRIC) return [];
    const [name = '', module = ''] = splitLast(entry.instance);
    return [{ series: place, name, module }];
  });
}

/** "f(int) · libc.so.6" is a function and its file. */
function splitLast(instance: string): string[] {
  const at = instance.lastIndexOf(' · ');
  return at < 0 ? [instance] : [instance.slice(0, at), instance.slice(at + 3)];
}

/** The first and the one after the last value that lies in the window. */
export function within(t: Float64Array, window: Span): [number, number] {
  return [lowerBound(t, window.from), lowerBound(t, window.to)];
}

export function sumOf(column: Column, [from, to]: [number, number]): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum += column.v[at] ?? 0;
  return sum;
}

/** Each function's part of all time on CPUs in the window; all 0 where there is none. */
export function sharesIn(columns: Column[], window: Span): number[] {
  const sums = columns.map((column) => sumOf(column, within(column.t, window)));
  const all = sums.reduce((sum, value) => sum + value, 0);
  return sums.map((sum) => (all > 0 ? sum / all : 0));
}

/** Where each function's area ends, bin by bin, when each stands on the ones before it. */
export function stackColumns(columns: Column[]): Float64Array[] {
  let below: Float64Array | null = null;
  return columns.map((column) => {
    const foot: Float64Array | null = below;
    below = column.v.map((value, at) => value + (foot?.[at] ?? 0));
    return below;
  });
}

/** How long a value stands for, in seconds: values lie in the middle of equal bins. */
export function binLength(t: Float64Array): number {
  return t.length > 1 ? (t[1] as number) - (t[0] as number) : 1;
}

/** The outline of an area in steps, as an SVG path: along its top, and back along its foot. */
export function outline(
  t: Float64Array,
  foot: Float64Array | null,
  top: Float64Array,
  [from, to]: [number, number],
  x: (t: number) => number,
  y: (value: number) => number,
): string {
  if (to <= from) return '';
  const half = binLength(t) / 2;
  const number = (value: number) => value.toFixed(1);
  const steps = (values: Float64Array | null, places: number[], isBack: boolean) =>
    places.map((at) => {
      const height = number(y(values?.[at] ?? 0));
      const [begin, end] = [number(x((t[at] as number) - half)), number(x((t[at] as number) + half))];
      return isBack ? `L${end},${height}L${begin},${height}` : `L${begin},${height}L${end},${height}`;
    });
  const places = Array.from({ length: to - from }, (_, at) => from + at);
  const there = steps(top, places, false).join('');
  const back = steps(foot, places.reverse(), true).join('');
  return `M${there.slice(1)}${back}Z`;
}
