/** Several runs on one time axis, which begins where the shown part of each run begins. */

import type { Level } from '../data/model.ts';
import { axisOf } from '../lib/axis.ts';
import type { MetricPick, Span } from '../lib/desk.svelte.ts';
import type { ServedSource } from './source.svelte.ts';

export interface ComparedRun {
  id: string;
  name: string;
  side: 'first' | 'second';
  /** In seconds of the run; null: all of it, or the level that is chosen. */
  window: Span | null;
  source: ServedSource;
}

const seconds = (source: ServedSource, ns: number) => (ns - source.head.origin_ns) / 1e9;

export class CompareDesk {
  readonly runs: ComparedRun[];
  view: Span = $state({ from: 0, to: 1 });
  readonly marked = null;
  dark: boolean = $state(false);
  /** Place on the axis of levels; null: all of each run. */
  at: number | null = $state(null);

  constructor(runs: ComparedRun[]) {
    this.runs = runs;
    this.showAll();
  }

  /** Levels that every run has, by their place on the axis; none where windows are compared. */
  get levels(): { at: number; name: string }[] {
    if (this.runs.some((run) => run.window)) return [];
    const of = this.runs.map((run) => {
      const axis = axisOf(run.source.head.run);
      return new Map(run.source.head.run.levels.filter((level) => level.purpose === 'sweep').map((level) => [axis.at(level), axis.short(level)]));
    });
    const [first, ...others] = of;
    return [...(first ?? [])].filter(([at]) => others.every((other) => other.has(at))).map(([at, name]) => ({ at, name }));
  }

  #levelOf(run: ComparedRun): Level | undefined {
    const axis = axisOf(run.source.head.run);
    return run.source.head.run.levels.find((level) => level.purpose === 'sweep' && axis.at(level) === this.at);
  }

  /** What of a run is shown, in its own seconds. */
  windowOf(run: ComparedRun): Span {
    const level = this.#levelOf(run);
    if (run.window) return run.window;
    if (level) return { from: seconds(run.source, level.window.begin_ns), to: seconds(run.source, level.window.end_ns) };
    return { from: 0, to: Math.max(1, seconds(run.source, run.source.head.end_ns)) };
  }

  /** Where in a run the axis begins. */
  beginOf(run: ComparedRun): number {
    return this.windowOf(run).from;
  }

  choose(at: number | null): void {
    this.at = at;
    this.showAll();
  }

  showSpan(span: Span): void {
    if (span.to - span.from > 0.05) this.view = { ...span };
  }

  showAll(): void {
    const lengths = this.runs.map((run) => this.windowOf(run)).map(({ from, to }) => to - from);
    this.view = { from: 0, to: Math.max(0.1, ...lengths) };
  }
}

/** What is drawn before the reader chooses: those of them that a run has. */
export function firstPicks(source: ServedSource): MetricPick[] {
  const choices: [string, string, string | null][] = [
    ['load', 'per_s', 'transaction'],
    ['load', 'latency_p95_ms', 'transaction'],
    ['status', 'Questions', null],
    ['status', 'Threads_running', null],
  ];
  const found = choices.flatMap(([from, metric, instance]): MetricPick[] => {
    const match = source.head.series.find((series) => series.source === from && series.metric === metric && (instance === null || series.instance === instance));
    return match ? [{ host: match.host, source: from, metric, instance }] : [];
  });
  return found.slice(0, 3);
}
