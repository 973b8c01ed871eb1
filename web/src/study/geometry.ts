/** Geometry of a study's charts. Pure. */

import { linear, log10, logTicks, ticks, type Scale } from '../lib/scale.ts';
import { bytes, percentChange, short, whole } from '../lib/words.ts';

export interface Axis {
  scale: Scale;
  ticks: { at: number; text: string }[];
  isLog: boolean;
  /** It does not begin at 0, though its values could. */
  isCut?: boolean;
}

/** Values that are further apart than this are on a logarithmic axis. */
const MANY_TIMES = 50;

export function spansMuch(values: number[]): boolean {
  const least = Math.min(...values);
  return values.length > 1 && least > 0 && Math.max(...values) > MANY_TIMES * least;
}

/** Limits an interval's end for the axis: a very wide interval would leave no room for the values. */
export function boundEnd(end: number, values: number[]): number {
  return Math.min(Math.max(end, Math.min(...values) / 2), 1.6 * Math.max(...values));
}

/** From 0 upwards; logarithmic where the values span much; from below the least one where that may be and they differ by little. */
export function valueAxis(values: number[], bottom: number, top: number, mayBeCut = false): Axis {
  const most = Math.max(...values, 0);
  if (spansMuch(values)) {
    const [from, to] = [Math.min(...values) * 0.85, most * 1.15];
    return { scale: log10(from, to, bottom, top), ticks: labelTicks(logTicks(from, to), short), isLog: true };
  }
  const count = Math.max(2, Math.round((bottom - top) / 48));
  const least = Math.min(...values);
  if (mayBeCut && least > 0.6 * most && most > least) {
    const step = ticks(most - least, count)[1] ?? 1;
    const [first, last] = [Math.floor(least / step + 1e-9), Math.ceil(most / step - 1e-9)];
    const steps = Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(10)));
    return { scale: linear(first * step, last * step, bottom, top), ticks: labelTicks(steps, (value) => String(value)), isLog: false, isCut: first > 0 };
  }
  const steps = ticks(most > 0 ? most : 1, count);
  return { scale: linear(0, steps.at(-1) ?? 1, bottom, top), ticks: labelTicks(steps, short), isLog: false };
}

/** Numbers of users, on a logarithmic axis that has a tick at each. */
export function usersAxis(users: number[], left: number, right: number): Axis {
  const logs = users.map(Math.log2);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  // Half a step between two neighbours at either end, for marks side by side.
  const pad = Math.max(0.35, 0.12 * (high - low));
  const scale = linear(low - pad, high + pad, left, right);
  const at = (count: number) => scale(Math.log2(count));
  return { scale: at, ticks: thinTicks(labelTicks([...new Set(users)].sort((a, b) => a - b), whole), at, 30), isLog: true };
}

export function secondsAxis(values: number[], left: number, right: number): Axis {
  const steps = ticks(Math.max(...values, 1), Math.max(2, Math.round((right - left) / 90)));
  const most = Math.max(...values, 1);
  return { scale: linear(0, most, left, right), ticks: labelTicks(steps.filter((step) => step <= most * 1.001), short), isLog: false };
}

/** Reports whether a knob is in bytes, by its name and values: the data do not have its unit. */
export function isBytes(knob: string, values: number[]): boolean {
  return knob.endsWith('_size') && values.every((value) => value % 1024 === 0);
}

/** Values of a knob; of a size in bytes with powers of two as ticks. */
export function knobAxis(knob: string, values: number[], left: number, right: number): Axis {
  const inBytes = isBytes(knob, values);
  const text = inBytes ? bytes : short;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (!spansMuch(values)) {
    const pad = (most - least || 1) * 0.03;
    const scale = linear(least - pad, most + pad, left, right);
    const step = niceStep((most - least) / 6, inBytes);
    const steps = Array.from({ length: 40 }, (_, index) => (Math.ceil(least / step) + index) * step).filter((value) => value <= most);
    return { scale, ticks: thinTicks(labelTicks(steps, text), scale, 56), isLog: false };
  }
  const scale = log10(least * 0.8, most * 1.25, left, right);
  const powers = Array.from({ length: 64 }, (_, power) => 2 ** power).filter((value) => value >= least * 0.8 && value <= most * 1.25);
  return { scale, ticks: thinTicks(labelTicks(inBytes ? powers : logTicks(least, most), text), scale, 62), isLog: true };
}

function niceStep(rough: number, inBytes: boolean): number {
  if (inBytes) return 2 ** Math.ceil(Math.log2(Math.max(rough, 1)));
  return ticks(rough > 0 ? rough : 1, 1)[1] ?? 1;
}

/** Ratios to a baseline, on a logarithmic axis: what is twice and what is half are as far from the middle. */
export function ratioAxis(from: number, to: number, left: number, right: number): Axis {
  const log = linear(Math.log(from), Math.log(to), left, right);
  const scale = (ratio: number) => log(Math.log(ratio));
  if (from > 0.52 && to < 1.95) {
    const step = ticks(100 * (to - from), Math.max(3, Math.round((right - left) / 80)))[1] ?? 10;
    const first = Math.ceil((100 * (from - 1)) / step);
    const last = Math.floor((100 * (to - 1)) / step);
    const steps = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
    const text = (percent: number) => (percent === 0 ? '0' : percentChange(percent / 100));
    return { scale, ticks: thinTicks(steps.map((percent) => ({ at: 1 + percent / 100, text: text(percent) })), scale, 40), isLog: true };
  }
  const factors = [2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000];
  const above = [...[10, 25, 50].map((percent) => ({ at: 1 + percent / 100, text: `+${percent} %` })), ...factors.map((at) => ({ at, text: `×${at}` }))];
  const below = [...[10, 25].map((percent) => ({ at: 1 - percent / 100, text: `−${percent} %` })), ...factors.map((factor) => ({ at: 1 / factor, text: `÷${factor}` }))];
  // From the middle outwards: no difference keeps its tick.
  const same = { at: 1, text: 'same' };
  const upwards = thinTicks([same, ...above.filter((tick) => tick.at <= to)], scale, 46);
  const downwards = thinTicks([same, ...below.filter((tick) => tick.at >= from)], scale, 46);
  return { scale, ticks: [...downwards.slice(1).reverse(), ...upwards], isLog: true };
}

/** Returns the ends of the axis that comparisons share. An interval far beyond the ratios is cut there. */
export function ratioEnds(rows: { ratio: number; t95: [number, number] | null; seen: number | null; muted: boolean }[], mattersPercent: number): [number, number] {
  const matters = Math.log(1 + mattersPercent / 100);
  const farthest = Math.max(...rows.map((row) => Math.abs(Math.log(row.ratio))), 0);
  const most = Math.max(3 * farthest, 5 * matters);
  let [low, high] = [-1.3 * matters, 1.3 * matters];
  for (const row of rows) {
    const ends = row.muted ? [] : [...(row.t95 ?? []), ...(row.seen === null ? [] : [row.seen, 1 / row.seen])];
    for (const end of [row.ratio, ...ends]) {
      const log = Math.min(Math.max(Math.log(end), -most), most);
      [low, high] = [Math.min(low, log), Math.max(high, log)];
    }
  }
  const pad = 0.06 * (high - low);
  return [Math.exp(low - pad), Math.exp(high + pad)];
}

function labelTicks(values: number[], text: (value: number) => string): { at: number; text: string }[] {
  return values.map((at) => ({ at, text: text(at) }));
}

/** Drops ticks that are nearer than `apart` pixels to the previous one. */
function thinTicks(all: { at: number; text: string }[], scale: Scale, apart: number): { at: number; text: string }[] {
  const shown: { at: number; text: string }[] = [];
  for (const tick of all) {
    const before = shown.at(-1);
    if (!before || Math.abs(scale(tick.at) - scale(before.at)) >= apart) shown.push(tick);
  }
  return shown;
}

/** Rows for labels over vertical lines, so that none lies on another: of each, in the order of `at`, its row and to which side it goes. */
export function labelRows(labels: { at: number; text: string }[], left: number, right: number, letter = 6.4): { row: number; anchor: 'start' | 'end' }[] {
  const ends: number[] = [];
  return labels.map(({ at, text }) => {
    const width = text.length * letter + 8;
    const anchor = at + width > right && at - left > right - at ? 'end' : 'start';
    const [from, to] = anchor === 'start' ? [at, at + width] : [at - width, at];
    let row = ends.findIndex((end) => end <= from);
    if (row < 0) row = ends.length;
    ends[row] = to;
    return { row, anchor };
  });
}
