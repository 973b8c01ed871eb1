/** What counters and gauges did over a window. Pure. */

import type { Column } from '../data/model.ts';
import type { Span } from './chartspec.ts';
import { growth } from './derive.ts';

/**
 * Growth per second of a counter over the part of the window that was read; null where no two readings are around any of it. A step that
 * lies partly in the window counts in proportion, as `increase` of the crate series has it.
 */
export function perSecondOver({ t, v }: Column, { from, to }: Span): number | null {
  let [amount, covered_s] = [0, 0];
  let [before, beforeT] = [NaN, NaN];
  for (let at = 0; at < t.length; at++) {
    const [now, nowT] = [v[at] as number, t[at] as number];
    if (Number.isNaN(now)) continue;
    const inside = Math.min(nowT, to) - Math.max(beforeT, from);
    if (!Number.isNaN(before) && inside > 0 && nowT > beforeT) {
      amount += (growth(before, now) * inside) / (nowT - beforeT);
      covered_s += inside;
    }
    [before, beforeT] = [now, nowT];
    if (nowT >= to) break;
  }
  return covered_s > 0 ? amount / covered_s : null;
}

/** Mean of a gauge's readings in a window; the last one before it where there is none in it; null where there is none at all. */
export function meanOver({ t, v }: Column, { from, to }: Span): number | null {
  let [sum, count, last] = [0, 0, NaN];
  for (let at = 0; at < t.length && (t[at] as number) <= to; at++) {
    const value = v[at] as number;
    if (Number.isNaN(value)) continue;
    last = value;
    if ((t[at] as number) < from) continue;
    sum += value;
    count++;
  }
  if (count > 0) return sum / count;
  return Number.isNaN(last) ? null : last;
}

/** Greatest of a gauge's readings in a window; the last one before it where there is none in it; null where there is none at all. */
export function mostOver({ t, v, band }: Column, { from, to }: Span): number | null {
  let [most, last] = [-Infinity, NaN];
  for (let at = 0; at < t.length && (t[at] as number) <= to; at++) {
    const value = band?.max[at] ?? (v[at] as number);
    if (Number.isNaN(value)) continue;
    last = value;
    if ((t[at] as number) >= from) most = Math.max(most, value);
  }
  if (most > -Infinity) return most;
  return Number.isNaN(last) ? null : last;
}
