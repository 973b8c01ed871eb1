/** Runs beside each other: what of each is shown, all on one axis that begins where the shown part does. */

import type { Level } from '../data/model.ts';
import { axisOf } from '../lib/axis.ts';
import type { Pick, Span } from '../lib/desk.svelte.ts';
import type { ServedSource } from './source.svelte.ts';

export interface Compared {
  id: string;
  name: string;
  source: ServedSource;
}

const seconds = (source: ServedSource, ns: number) => (ns - source.head.origin_ns) / 1e9;

export class CompareDesk {
  readonly runs: Compared[];
  view: Span = $state({ from: 0, to: 1 });
  readonly marked = null;
  dark: boolean = $state(false);
  /** Place on the axis of levels; null: all of each run. */
  at: number | null = $state(null);

  constructor(runs: Compared[]) {
    this.runs = runs;
    this.lookAtAll();
  }

  /** Levels that every run has, by their place on the axis. */
  get levels(): { at: number; name: string }[] {
    const of = this.runs.map((run) => {
      const axis = axisOf(run.source.head.run);
      return new Map(run.source.head.run.levels.filter((level) => level.purpose === 'sweep').map((level) => [axis.at(level), axis.short(level)]));
    });
    const [first, ...others] = of;
    return [...(first ?? [])].filter(([at]) => others.every((other) => other.has(at))).map(([at, name]) => ({ at, name }));
  }

  #levelOf(run: Compared): Level | undefined {
    const axis = axisOf(run.source.head.run);
    return run.source.head.run.levels.find((level) => level.purpose === 'sweep' && axis.at(level) === this.at);
  }

  /** Where in a run the axis begins. */
  beginOf(run: Compared): number {
    const level = this.#levelOf(run);
    return level ? seconds(run.source, level.window.begin_ns) : 0;
  }

  #lengthOf(run: Compared): number {
    const level = this.#levelOf(run);
    if (level) return (level.window.end_ns - level.window.begin_ns) / 1e9;
    return seconds(run.source, run.source.head.end_ns);
  }

  choose(at: number | null): void {
    this.at = at;
    this.lookAtAll();
  }

  look(span: Span): void {
    if (span.to - span.from > 0.05) this.view = { ...span };
  }

  lookAtAll(): void {
    const longest = Math.max(1, ...this.runs.map((run) => this.#lengthOf(run)));
    this.view = { from: 0, to: longest };
  }
}

/** What is drawn before the reader chooses: those of them that a run has. */
export function firstPicks(source: ServedSource): Pick[] {
  const wanted: [string, string, string | null][] = [
    ['load', 'per_s', 'transaction'],
    ['load', 'latency_p95_ms', 'transaction'],
    ['status', 'Questions', null],
    ['status', 'Threads_running', null],
  ];
  const found = wanted.flatMap(([from, metric, instance]): Pick[] => {
    const one = source.head.series.find((series) => series.source === from && series.metric === metric && (instance === null || series.instance === instance));
    return one ? [{ host: one.host, source: from, metric, instance }] : [];
  });
  return found.slice(0, 3);
}
