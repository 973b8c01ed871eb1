/** The names of a flame graph's metrics, the intervals of its totals, and its colours. Pure. */

import type { FlameLevel } from '../data/model.ts';
import type { ModuleKind } from './flame.ts';

export interface MetricText {
  short: string;
  title: string;
  noun: string;
  /** What a frame's width is. */
  width: string;
}

const METRICS = {
  cpu: { short: 'CPU', title: 'time on CPUs', noun: 'time on CPUs', width: 'the CPU time' },
  lock: { short: 'lock', title: 'waits for locks', noun: 'lock wait', width: 'the time waited for locks' },
  io: { short: 'io', title: 'reads, writes and syncs of files', noun: 'file wait', width: 'the time in reads, writes and syncs of files' },
  runqueue: { short: 'runqueue', title: 'waits for a CPU', noun: 'wait for a CPU', width: 'the time ready without a CPU' },
  other: {
    short: 'other waits',
    title: 'other waits',
    noun: 'other wait',
    width: 'the time waited for locks of the kernel, pages, sleeps, asynchronous requests, and to send',
  },
} as const;
export const METRIC_TEXT: Record<string, MetricText> = METRICS;

export const THREADS_TEXT: Record<string, string> = { connection: "connections' threads", background: 'background threads' };

/** The kind of threads, and the role, whose time is whyso's own. */
export const OBSERVER = 'observer';

/** Threads that are summed: the place of one kind of them, or all kinds. */
export type ThreadChoice = number | 'all';

/** Places of the kinds of threads that are summed. The observer's time is added only with `withObserver`. */
export function kindsOf(threads: string[], kind: ThreadChoice, withObserver: boolean): number[] {
  const observer = threads.indexOf(OBSERVER);
  const places = kind === 'all' ? threads.map((_, at) => at).filter((at) => at !== observer) : [kind];
  return withObserver && observer >= 0 ? [...places, observer] : places;
}

/** Returns the number of samples behind summed columns, and half of their interval: the samples are independent. */
export function totalOf(level: FlameLevel | undefined, metric: number, threads: number[], metrics: number): { half_us: number; samples: number } {
  const columns = threads.flatMap((kind) => level?.columns[kind * metrics + metric] ?? []);
  return {
    half_us: Math.hypot(...columns.map((column) => column.half_us)),
    samples: columns.reduce((sum, column) => sum + column.samples, 0),
  };
}

/** The part of a search match's own colour; the rest is the paper's. */
export const FOUND = 0.6;
/** The same of the greatest difference, so that labels stay legible on it. */
export const CHANGED = 0.6;
export const LESS = '--c1';
export const MORE = '--bad';
export const KIND_COLOR: Record<ModuleKind, string> = {
  server: '--c2',
  kernel: '--c1',
  libc: '--c3',
  library: '--c4',
  unknown: '--c5',
};

/** A colour of its module's kind, a little other from name to name, so that neighbours stay apart. */
export function shadeOf(name: string, color: string, paper: string): string {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0;
  return mixColors(color, paper, 0.4 + ((hash >>> 0) % 5) * 0.05);
}

/** A part of one colour and the rest of another, as `#rrggbb`. */
export function mixColors(first: string, second: string, part: number): string {
  const channel = (color: string, at: number) => parseInt(color.slice(1 + 2 * at, 3 + 2 * at), 16);
  const of = (at: number) => Math.round(channel(first, at) * part + channel(second, at) * (1 - part));
  return `#${[0, 1, 2].map((at) => of(at).toString(16).padStart(2, '0')).join('')}`;
}
