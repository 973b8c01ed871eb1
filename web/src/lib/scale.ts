/** Geometry of the charts against users or rates. Pure. */

import type { Regime, LevelVerdict } from '../data/model.ts';

export type Scale = (value: number) => number;

/** Users, or rates, on a log2 axis from `left` to `right`, with room for a marker at either end. */
export function levelScale(levels: number[], left: number, right: number): Scale {
  const low = Math.log2(Math.min(...levels)) - 0.45;
  const high = Math.log2(Math.max(...levels)) + 0.45;
  return (count) => left + ((Math.log2(count) - low) / (high - low)) * (right - left);
}

export function linear(from: number, to: number, bottom: number, top: number): Scale {
  return (value) => bottom + ((value - from) / (to - from || 1)) * (top - bottom);
}

export function log10(from: number, to: number, bottom: number, top: number): Scale {
  const scale = linear(Math.log10(from), Math.log10(to), bottom, top);
  return (value) => scale(Math.log10(Math.max(value, from)));
}

/** Round steps from 0 to at least `max`, about `count` of them. */
export function ticks(max: number, count: number): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((size) => size >= rough) ?? 10 * power;
  const steps = Math.ceil(max / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, index) => index * step);
}

/** Ticks of a log axis at 1, 2, 5 of every power of ten, thinned to powers of ten where there are many. */
export function logTicks(from: number, to: number): number[] {
  const make = (times: number[]) => {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
      for (const factor of times) {
        const tick = factor * 10 ** power;
        if (tick >= from * 0.999 && tick <= to * 1.001) found.push(Number(tick.toPrecision(3)));
      }
    }
    return found;
  };
  const fine = make([1, 2, 5]);
  return fine.length > 7 ? make([1]) : fine;
}

export interface Zone {
  regime: Regime;
  left: number;
  right: number;
}

/** Runs of levels in the same regime, as stretches of the axis that meet half way between levels. */
export function zones(verdicts: LevelVerdict[], x: Scale, left: number, right: number): Zone[] {
  const judged = [...verdicts].sort((a, b) => a.users - b.users).filter((candidate) => candidate.regime !== 'unknown');
  const found: Zone[] = [];
  for (const [index, verdict] of judged.entries()) {
    const before = judged[index - 1];
    const begin = before ? (x(before.users) + x(verdict.users)) / 2 : left;
    const last = found.at(-1);
    if (last && last.regime === verdict.regime) continue;
    if (last) last.right = begin;
    found.push({ regime: verdict.regime, left: begin, right });
  }
  return found;
}

/** Moves labels apart, keeping their order, so that none is nearer to its neighbour than `apart`. */
export function spread(positions: number[], apart: number): number[] {
  const order = positions.map((_, index) => index).sort((a, b) => (positions[a] as number) - (positions[b] as number));
  const placed = [...positions];
  for (let step = 1; step < order.length; step++) {
    const before = placed[order[step - 1] as number] as number;
    const here = order[step] as number;
    placed[here] = Math.max(placed[here] as number, before + apart);
  }
  return placed;
}

export function path(points: [number, number][]): string {
  return points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x.toFixed(1)},${y.toFixed(1)}`).join('');
}
