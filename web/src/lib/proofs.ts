/** What experiments showed of a run's suspects, as the page shows it. Pure. */

import type { ProofHead } from '../data/model.ts';
import { number } from './words.ts';

/** Ends of the scale of gains, unless a gain lies beyond. */
const FROM = 0.5;
const TO = 8;

/** Where a gain lies on the logarithmic scale, 0 to 1. */
export type GainScale = (gain: number) => number;

export interface GainBar {
  /** Begin and end of what was predicted and of what was measured, 0 to 1. */
  predicted?: [number, number];
  measured?: [number, number];
  /** Gains with a tick, and their places. */
  ticks: { gain: number; place: number }[];
}

/** The bars of a proof, on a scale that all proofs of the run share. */
export function barOf(proof: ProofHead, scale: GainScale, ends: [number, number]): GainBar {
  const ticks = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 1024].filter((gain) => gain >= ends[0] && gain <= ends[1]);
  return {
    ...(proof.predicted ? { predicted: [scale(proof.predicted[0]), scale(proof.predicted[1])] as [number, number] } : {}),
    ...(proof.measured ? { measured: [scale(proof.measured[1]), scale(proof.measured[2])] as [number, number] } : {}),
    ticks: ticks.map((gain) => ({ gain, place: scale(gain) })),
  };
}

/** The ends of the scale that holds all of these proofs. */
export function endsOf(proofs: readonly ProofHead[]): [number, number] {
  const gains = proofs.flatMap((proof) => [...(proof.predicted ?? []), ...(proof.measured ?? [])]).filter((gain) => gain > 0 && Number.isFinite(gain));
  return [Math.min(FROM, ...gains), Math.max(TO, ...gains)];
}

export function scaleOf([from, to]: [number, number]): GainScale {
  return (gain) => Math.min(1, Math.max(0, Math.log(Math.max(gain, 1e-9) / from) / Math.log(to / from)));
}

/** "×3.17 (2.77 to 3.67)"; empty where nothing was measured. */
export function measuredWords({ measured }: ProofHead): string {
  return measured ? `×${number(measured[0])} (${number(measured[1])} to ${number(measured[2])})` : '';
}

/** "predicted ×2.36 to ×5.1"; empty where nothing was predicted. */
export function predictedWords({ predicted }: ProofHead): string {
  return predicted ? `predicted ×${number(predicted[0])} to ×${number(predicted[1])}` : '';
}

/** A slowed server: how long its work takes to the right, how long a transaction takes upwards, each 0 to 1. */
export interface Curve {
  points: { percent: number; time: number; x: number; y: number; low: number; high: number }[];
  /** From full speed to the slowest. */
  measured: [Place, Place];
  /** From full speed to twice that. */
  extrapolated: [Place, Place];
  speeds: { percent: number; place: number }[];
  times: { time: number; place: number }[];
}

interface Place {
  x: number;
  y: number;
}

/** The curve through the speeds that were measured, and on to twice the speed. */
export function curveOf({ slowed, measured }: ProofHead): Curve {
  const workMost = Math.max(2, ...slowed.map(([percent]) => 100 / percent));
  const timeMost = Math.max(2, ...slowed.map(([, , low]) => 1 / low));
  const place = (value: number, most: number) => Math.min(1, Math.max(0, (value - 0.5) / (most - 0.5)));
  const at = (work: number, time: number) => ({ x: place(work, workMost), y: place(time, timeMost) });
  const points = slowed.map(([percent, ratio, low, high]) => ({
    percent,
    time: 1 / ratio,
    ...at(100 / percent, 1 / ratio),
    low: place(1 / high, timeMost),
    high: place(1 / low, timeMost),
  }));
  const now = at(1, 1);
  const slowest = points.at(-1) ?? now;
  return {
    points,
    measured: [now, { x: slowest.x, y: slowest.y }],
    extrapolated: [now, at(0.5, 1 / (measured?.[0] ?? 1))],
    speeds: [200, 100, ...slowed.map(([percent]) => percent)].map((percent) => ({ percent, place: place(100 / percent, workMost) })),
    times: [0.5, 1, 1.5, 2].map((time) => ({ time, place: place(time, timeMost) })),
  };
}
