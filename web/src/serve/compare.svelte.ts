/** Several runs on one time axis: from where the shown part of each begins, by the time of day, or by the wall's clock. */

import type { Level } from '../data/model.ts';
import { axisOf } from '../lib/axis.ts';
import type { MetricPick, Span } from '../lib/chartspec.ts';
import { daysOf, midnightOf, onWall, timeOfDay, unixTime, wallText, type AxisKind, type Segment } from '../lib/wallclock.ts';
import { workloadOf } from '../lib/summary.ts';
import { clock, count } from '../lib/words.ts';
import type { ServedSource } from './source.svelte.ts';

export interface ComparedRun {
  id: string;
  name: string;
  side: 'first' | 'second';
  /** In seconds of the run; null: all of it, or the level that is chosen. */
  window: Span | null;
  source: ServedSource;
}

/** A part of a run as a chart draws it. */
export interface PlacedPart {
  run: ComparedRun;
  /** What distinguishes it from the others. */
  name: string;
  segment: Segment;
}

/** Parts that a chart draws: more lines are not distinguished. */
const PARTS_MAX = 62;
/** Why a setting is in a run's plan: `SettingReason::ASKED` of the crate model. */
const ASKED = 'asked for';
/** On either side of what is shown of the wall's clock. */
const MARGIN = 0.01;

const seconds = (source: ServedSource, ns: number) => (ns - source.head.origin_ns) / 1e9;

export class CompareDesk {
  readonly runs: ComparedRun[];
  view: Span = $state({ from: 0, to: 1 });
  readonly marked = null;
  dark: boolean = $state(false);
  /** Place on the axis of levels; null: all of each run. */
  at: number | null = $state(null);
  /** What the axis counts. */
  axis: AxisKind = $state('begin');
  /** A chart for each part next to each other, with one value axis. */
  isSideBySide: boolean = $state(false);

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

  /** The parts of the runs as they lie on the axis. */
  get parts(): PlacedPart[] {
    const { axis } = this;
    const all = this.runs.flatMap((run): PlacedPart[] => {
      const { head } = run.source;
      const window = this.windowOf(run);
      const placed = (segment: Segment): PlacedPart => ({ run, name: segment.day === '' ? run.name : `${segment.day} · ${run.name}`, segment });
      if (axis === 'day') return daysOf(head, window).map(placed);
      const segment = axis === 'wall' ? onWall(head, window, this.#base) : { ...window, begin: window.from, day: '' };
      return segment ? [placed(segment)] : [];
    });
    return all.slice(0, PARTS_MAX);
  }

  /** What is not on the axis, as text. */
  get left(): string[] {
    if (this.axis === 'begin') return [];
    const without = this.runs.filter((run) => run.source.head.run.anchors.length === 0);
    const words = without.map((run) => `${run.name}: its time of day is not known`);
    const days = this.axis === 'day' ? this.runs.reduce((sum, run) => sum + daysOf(run.source.head, this.windowOf(run)).length, 0) : 0;
    return days > PARTS_MAX ? [...words, `${count(days - PARTS_MAX, 'day')} more are not drawn`] : words;
  }

  /** Midnight of the first day, from which the axis of the wall's clock counts, in seconds of local time. */
  get #base(): number {
    const begins = this.runs.flatMap((run) => unixTime(run.source.head, this.windowOf(run).from) ?? []);
    return begins.length === 0 ? 0 : midnightOf(Math.min(...begins));
  }

  /** A place on the axis as text; `step_s`: between it and the next. */
  timeText = (x: number, step_s: number): string => {
    if (this.axis === 'begin') return clock(x, step_s);
    return this.axis === 'day' ? timeOfDay(x, step_s) : wallText(x, step_s, this.#base);
  };

  choose(at: number | null): void {
    this.at = at;
    this.showAll();
  }

  chooseAxis(axis: AxisKind): void {
    this.axis = axis;
    this.showAll();
  }

  showSpan(span: Span): void {
    if (span.to - span.from > 0.05) this.view = { ...span };
  }

  showAll(): void {
    const segments = this.parts.map((part) => part.segment);
    if (this.axis === 'begin' || segments.length === 0) {
      this.view = { from: 0, to: Math.max(0.1, ...segments.map(({ from, to }) => to - from)) };
      return;
    }
    const from = Math.min(...segments.map((segment) => segment.from - segment.begin));
    const to = Math.max(...segments.map((segment) => segment.to - segment.begin));
    const margin = Math.max(1, to - from) * MARGIN;
    this.view = { from: from - margin, to: to + margin };
  }
}

/** What distinguishes a run from others of its workload: the settings that were asked for, otherwise its workload. */
export function detailOf({ source, window }: ComparedRun): string {
  const { run } = source.head;
  const asked = run.spec.settings.filter(({ why }) => why === '' || why.startsWith(ASKED)).map(({ name, value }) => `${name}=${value}`);
  const what = asked.length > 0 ? asked.join(', ') : workloadOf(run);
  const level = window ? run.levels.find((candidate) => seconds(source, candidate.window.begin_ns) < window.to && window.from < seconds(source, candidate.window.end_ns)) : undefined;
  return level && level.users > 0 ? `${axisOf(run).name(level)} · ${what}` : what;
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
