/** How far the value axes of a chart over time reach, and which lines share one. Pure. */

import type { Column } from '../data/model.ts';
import { extent, lowerBound } from './envelope.ts';

interface View {
  from: number;
  to: number;
}

/** Largest difference of values that differ only by rounding, as a share of them. */
const SAME = 1e-9;

/** The units on a chart: the first has the left axis, all others share the right one. */
export function suffixesOf(lines: { suffix: string }[]): string[] {
  return [...new Set(lines.map((line) => line.suffix))];
}

export function valueRange(columns: Column[], { from, to }: View, log: boolean): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const column of columns) {
    const found = extent(column, from, to);
    if (!found) continue;
    low = Math.min(low, log ? leastAboveZero(column, from, to) : found[0]);
    high = Math.max(high, found[1]);
  }
  if (log) {
    if (!(high > 0)) return [0.1, 10];
    const floor = 10 ** Math.floor(Math.log10(Math.min(low, high)) + 1e-9);
    return [floor, Math.max(high * 1.3, floor * 10)];
  }
  if (low > high) return [0, 1];
  // Values that differ by rounding only are one value: an axis between them would have steps that no number can make.
  if (high - low <= SAME * Math.max(Math.abs(low), Math.abs(high))) return low === 0 ? [0, 1] : low > 0 ? [0, high * 1.25] : [low * 1.25, 0];
  // A raw counter of billions would be a flat line if its axis began at zero.
  const fromZero = low >= 0 && low < high * 0.8;
  const room = (high - low) * 0.08;
  return [fromZero ? 0 : low < 0 ? low - room : Math.max(0, low - room), high + (fromZero ? high : high - low) * 0.08];
}

function leastAboveZero(column: Column, from: number, to: number): number {
  let least = Infinity;
  for (let index = lowerBound(column.t, from); index < column.t.length && (column.t[index] as number) <= to; index++) {
    const value = column.v[index] as number;
    if (value > 0) least = Math.min(least, value);
  }
  return least;
}
