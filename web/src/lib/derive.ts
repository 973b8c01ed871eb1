/** Calculates rates and growth per transaction from recorded counters. Pure. */

import type { Column, Kind } from '../data/model.ts';

export type Mode = 'rate' | 'raw' | 'per_transaction';

/** A counter that falls to this part of its value or less was reset. */
const RESET_MAX = 0.5;

/**
 * What a counter grew by between two readings. After a reset it is the new value; a smaller fall is a reading in the middle of a
 * change, and no growth. `growth` of the crate series has the same rule, and both read crates/series/fixtures/growth.json in their tests.
 */
export function growth(then: number, now: number): number {
  if (now >= then) return now - then;
  return now <= RESET_MAX * then ? Math.max(now, 0) : 0;
}

/** Growth per second between neighbouring readings, each at the later one. */
export function rates(column: Column): Column {
  return steps(column, (amount, seconds) => (seconds > 0 ? amount / seconds : NaN));
}

/** Growth over the transactions that ended in the meantime; a gap where none did. */
export function perTransaction(column: Column, transactions: Cumulative): Column {
  return steps(column, (amount, _seconds, from, to) => {
    const ended = transactions.at(to) - transactions.at(from);
    return ended >= 1 ? amount / ended : NaN;
  });
}

function steps(column: Column, value: (amount: number, seconds: number, from: number, to: number) => number): Column {
  const t: number[] = [];
  const v: number[] = [];
  let before = NaN;
  let beforeT = NaN;
  for (let index = 0; index < column.t.length; index++) {
    const now = column.v[index] as number;
    const nowT = column.t[index] as number;
    if (Number.isNaN(now)) {
      t.push(nowT);
      v.push(NaN);
      continue;
    }
    if (!Number.isNaN(before)) {
      const amount = growth(before, now);
      t.push(nowT);
      v.push(value(amount, nowT - beforeT, beforeT, nowT));
    }
    before = now;
    beforeT = nowT;
  }
  return { t: Float64Array.from(t), v: Float64Array.from(v) };
}

/** Transactions that have ended by any moment, linear between the moments that are known. */
export class Cumulative {
  #t: number[];
  #total: number[];

  /** `perSecond` holds for the interval that ends at its time; where readings are apart, nothing ended in between. */
  constructor(perSecond: Column, longest_s: number) {
    this.#t = [];
    this.#total = [];
    let total = 0;
    for (let index = 0; index < perSecond.t.length; index++) {
      const end = perSecond.t[index] as number;
      const before = perSecond.t[index - 1] ?? -Infinity;
      const begin = end - before > longest_s ? end - 1 : before;
      if (begin !== before) {
        this.#t.push(begin);
        this.#total.push(total);
      }
      const rate = perSecond.v[index] as number;
      total += (Number.isNaN(rate) ? 0 : rate) * (end - begin);
      this.#t.push(end);
      this.#total.push(total);
    }
  }

  at(t: number): number {
    const times = this.#t;
    if (times.length === 0 || t <= (times[0] as number)) return 0;
    let low = 0;
    let high = times.length - 1;
    if (t >= (times[high] as number)) return this.#total[high] as number;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((times[middle] as number) <= t) low = middle;
      else high = middle;
    }
    const share = (t - (times[low] as number)) / ((times[high] as number) - (times[low] as number));
    return (this.#total[low] as number) + share * ((this.#total[high] as number) - (this.#total[low] as number));
  }
}

/** A column as a mode shows it. Gauges have no rate; only counters can be divided by transactions. */
export function inMode(column: Column, kind: Kind, mode: Mode, transactions: Cumulative | null): Column {
  if (kind === 'gauge' || mode === 'raw') return column;
  if (mode === 'per_transaction' && transactions) return perTransaction(column, transactions);
  return rates(column);
}

/** Added up moment by moment. Where one is missing the sum is a gap: a smaller sum would be wrong. */
export function summed(columns: Column[]): Column {
  const total = new Map<number, { value: number; count: number }>();
  for (const { t, v } of columns) {
    t.forEach((at, index) => {
      const sum = total.get(at) ?? { value: 0, count: 0 };
      total.set(at, { value: sum.value + (v[index] as number), count: sum.count + 1 });
    });
  }
  const moments = [...total].sort(([a], [b]) => a - b);
  return {
    t: Float64Array.from(moments, ([at]) => at),
    v: Float64Array.from(moments, ([, { value, count }]) => (count === columns.length ? value : NaN)),
  };
}

/** The same in another unit, at other times: `begin` is where the other axis has its zero. */
export function moved({ t, v, band }: Column, factor: number, begin = 0): Column {
  const times = (values: Float64Array) => (factor === 1 ? values : values.map((value) => value * factor));
  const at = begin === 0 ? t : t.map((value) => value - begin);
  if (!band) return { t: at, v: times(v) };
  return { t: at, v: times(v), band: { min: times(band.min), q1: times(band.q1), q3: times(band.q3), max: times(band.max) } };
}

/** Returns the weight of a line, for the top N of many instances: a counter's growth, a gauge's mean. */
export function weight(column: Column, kind: Kind): number {
  let total = 0;
  let count = 0;
  let before = NaN;
  for (const value of column.v) {
    if (Number.isNaN(value)) continue;
    if (kind === 'gauge') total += Math.abs(value);
    else if (!Number.isNaN(before)) total += growth(before, value);
    before = value;
    count++;
  }
  return kind === 'gauge' ? total / Math.max(1, count) : total;
}
