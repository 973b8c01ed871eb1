/** How a dense line is drawn: not thinned, but as what lies in each pixel column. */

import type { Column } from '../data/model.ts';

/** Values of one pixel column. `count` 0 is a gap. */
export interface Bucket {
  count: number;
  min: number;
  q1: number;
  median: number;
  q3: number;
  max: number;
}

/** First index whose time is not before `t`. */
export function lowerBound(times: Float64Array, t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the sample nearest in time, or -1. */
export function nearest(times: Float64Array, t: number): number {
  const after = lowerBound(times, t);
  if (after >= times.length) return times.length - 1;
  if (after === 0) return times.length > 0 ? 0 : -1;
  const isBeforeNearer = t - (times[after - 1] as number) < (times[after] as number) - t;
  return isBeforeNearer ? after - 1 : after;
}

/**
 * Buckets of [from, to) in `count` equal columns. The extremes are exact: a spike of one sample stays. Where the column is itself
 * an envelope, the extremes stay exact and the quartiles are those of its medians.
 */
export function envelope(column: Column, from: number, to: number, count: number): Bucket[] {
  const buckets: Bucket[] = [];
  const width = (to - from) / count;
  let index = lowerBound(column.t, from);
  for (let bucket = 0; bucket < count; bucket++) {
    const end = bucket === count - 1 ? to : from + (bucket + 1) * width;
    const values: number[] = [];
    let min = Infinity;
    let max = -Infinity;
    while (index < column.t.length && (column.t[index] as number) < end) {
      const value = column.v[index] as number;
      if (!Number.isNaN(value)) {
        values.push(value);
        min = Math.min(min, column.band?.min[index] ?? value);
        max = Math.max(max, column.band?.max[index] ?? value);
      }
      index++;
    }
    values.sort((a, b) => a - b);
    buckets.push({
      count: values.length,
      min,
      q1: quantile(values, 0.25),
      median: quantile(values, 0.5),
      q3: quantile(values, 0.75),
      max,
    });
  }
  return buckets;
}

/** Interpolated between neighbours (Hyndman and Fan's type 7); NaN of nothing. `sorted` ascends. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return NaN;
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (high - low) * (position - below);
}

/** Least and greatest value in [from, to], with one sample more on either side; null where there is none. */
export function extent(column: Column, from: number, to: number): [number, number] | null {
  let min = Infinity;
  let max = -Infinity;
  const begin = Math.max(0, lowerBound(column.t, from) - 1);
  const end = Math.min(column.t.length, lowerBound(column.t, to) + 1);
  for (let index = begin; index < end; index++) {
    const value = column.v[index] as number;
    if (Number.isNaN(value)) continue;
    min = Math.min(min, column.band?.min[index] ?? value);
    max = Math.max(max, column.band?.max[index] ?? value);
  }
  return min <= max ? [min, max] : null;
}

/** A step this many times the usual one is a gap. */
const GAP_STEPS = 3.5;

/** The distance in time beyond which two samples are not joined. */
export function gapLength(times: Float64Array): number {
  const stride = Math.max(1, Math.floor(times.length / 500));
  const steps = new Float64Array(Math.max(0, Math.ceil((times.length - 1) / stride)));
  for (let at = 0; at < steps.length; at++) steps[at] = (times[at * stride + 1] as number) - (times[at * stride] as number);
  steps.sort();
  return steps.length === 0 ? Infinity : quantile(steps, 0.5) * GAP_STEPS;
}
