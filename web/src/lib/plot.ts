/** What a chart over time draws: lines of one run's metrics, or of one metric in several runs. Pure, except for the sources that are read. */

import type { Line } from '../charts/timechart.ts';
import type { Column, Kind, SeriesHead } from '../data/model.ts';
import type { DataSource, LinesRequest } from '../data/source.ts';
import { moved, type Mode } from './derive.ts';
import { EVERY_HOST, type MetricPick, type Span } from './chartspec.ts';
import type { Desk } from './desk.svelte.ts';
import { lowerBound } from './envelope.ts';
import { unitOf } from './units.ts';

/** What of a desk a chart over time needs. */
export type TimeDesk = Pick<Desk, 'view' | 'marked' | 'dark' | 'showSpan' | 'showAll'> & {
  /** A place on the axis as text; absent: minutes and seconds of the run. `step_s`: between it and the next. */
  timeText?: (t: number, step_s: number) => string;
};

/** A window, and for how many pixels it is drawn. */
export type Stretch = Pick<LinesRequest, 'from' | 'to' | 'px'>;

export type LineOptions = Pick<LinesRequest, 'mode' | 'top' | 'sum'>;

/** A line without its colour, which follows from its place. */
export interface Stroke extends Omit<Line, 'color'> {
  place: number;
}

export interface Picture {
  strokes: Stroke[];
  /** What is not drawn, as text. */
  left: string[];
}

/** Where a chart's lines come from. */
export interface Plot {
  /** As in `DataSource`. */
  isWhole: boolean;
  read: (stretch: Stretch, signal: AbortSignal) => Promise<Picture>;
}

/** Where a chart can go in addition to a file. A report file has none: its address cannot hold a view. */
export interface Outlet {
  /** Shows this chart over this window. */
  link: () => string;
  /** Adds a picture of it to the report that is being written. */
  keep: (svg: string) => void;
}

export const MODES: [Mode, string, string][] = [
  ['rate', 'rate', 'Growth per second'],
  ['per_transaction', 'per transaction', 'Growth divided by the transactions that ended in the meantime'],
  ['raw', 'raw', 'The counter as the source reports it'],
];

/** Positions of a metric's instances. */
export function instancesOf(series: SeriesHead[], pick: MetricPick): number[] {
  return series.flatMap((entry, number) => {
    const isHost = pick.host === EVERY_HOST || entry.host === pick.host;
    const isNamed = entry.source === pick.source && entry.metric === pick.metric && isHost;
    return isNamed && (pick.instance === null || entry.instance === pick.instance) ? [number] : [];
  });
}

/** Ways to show these series. A sum of counters that began at different times means nothing; a sum of their growth does. */
export function modesOf(series: (SeriesHead | undefined)[], isSum: boolean): Mode[] {
  if (!series.some((entry) => entry?.kind === 'counter')) return [];
  return MODES.map(([mode]) => mode).filter((mode) => !isSum || mode !== 'raw');
}

function modeOf(mode: Mode, kind: Kind, isSum: boolean): Mode {
  return isSum && kind === 'counter' && mode === 'raw' ? 'rate' : mode;
}

/** Metrics of one run: of each its instances. Those that are neither ranked nor added up are read together. */
export async function ofMetrics(source: DataSource, groups: number[][], how: LineOptions, stretch: Stretch, signal: AbortSignal): Promise<Picture> {
  const there = groups.filter((group) => group.length > 0);
  const isSummed = (group: number[]) => how.sum && group.length > 1;
  const isWhole = (group: number[]) => !isSummed(group) && group.length <= how.top;
  const together = there.filter(isWhole).flat();
  const all = together.length > 0 ? source.lines(together, { ...stretch, ...how, top: 0, sum: false }, signal) : null;
  const read = await Promise.all(
    there.map(async (group) => {
      const about = source.head.series[group[0] as number] as SeriesHead;
      const sum = isSummed(group);
      const mode = modeOf(how.mode, about.kind, sum);
      if (!isWhole(group)) return { group, about, mode, ...(await source.lines(group, { ...stretch, ...how, mode, sum }, signal)) };
      const lines = (await all)?.lines ?? [];
      return { group, about, mode, lines: lines.filter((line) => line.series !== null && group.includes(line.series)), left: 0 };
    }),
  );
  const manyHosts = new Set(read.map(({ about }) => about.host)).size > 1;
  const manyMetrics = manyHosts ? new Set(read.map(({ about }) => about.metric)).size > 1 : there.length > 1;
  const strokes = read.flatMap(({ group, about, mode, lines }) =>
    lines.map(({ series, column }) => {
      const head = (series === null ? undefined : source.head.series[series]) ?? about;
      const unit = unitOf(head.kind, head.unit, mode, head.metric);
      const instance = series === null ? `sum of ${group.length}` : head.instance;
      const name = manyHosts && !manyMetrics && group.length === 1 ? '' : labelOf(head.metric, instance, manyMetrics, group.length > 1);
      const label = manyHosts ? `${head.host} ${name}`.trim() : name;
      return { label, suffix: unit.suffix, column: moved(column, unit.factor) };
    }),
  );
  const hidden = read.reduce((total, entry) => total + entry.left, 0);
  return { strokes: strokes.map((stroke, place) => ({ ...stroke, place })), left: hidden > 0 ? [`${hidden} less busy are not drawn`] : [] };
}

/** Instances that name no part of anything. */
const WHOLE = ['', 'transaction'];

export function labelOf(metric: string, instance: string, manyMetrics: boolean, manyInstances: boolean): string {
  const name = metric.replace(/_100ms$/, '');
  if (manyInstances) return manyMetrics ? `${name} ${instance}` : instance || 'all';
  return WHOLE.includes(instance) || (manyMetrics && instance === 'all') ? name : `${name} ${instance}`;
}

/** A run of several or a part of one, and where in it the axis begins. */
export interface Side {
  name: string;
  source: DataSource;
  begin: number;
  /** The metric as this run calls it. */
  pick: MetricPick;
  /** The part, in the run's seconds; absent: all of the run, also what was before and after the window. */
  only?: Span;
}

/** One metric, the sum of its instances, in each of several runs. */
export async function ofRuns(sides: Side[], mode: Mode, { from, to, px }: Stretch, signal: AbortSignal): Promise<Picture> {
  const missing = new Set<string>();
  const read = await Promise.all(
    sides.map(async ({ name, source, begin, pick, only }, place): Promise<Stroke[]> => {
      const instances = instancesOf(source.head.series, pick);
      const about = source.head.series[instances[0] ?? -1];
      if (!about) {
        missing.add(`${name}: not recorded`);
        return [];
      }
      const sum = instances.length > 1;
      const shown = modeOf(mode, about.kind, sum);
      const window = { from: Math.max(from + begin, only?.from ?? -Infinity), to: Math.min(to + begin, only?.to ?? Infinity) };
      if (window.from >= window.to) return [];
      const { lines } = await source.lines(instances, { ...window, px, mode: shown, top: 0, sum }, signal);
      const unit = unitOf(about.kind, about.unit, shown, about.metric);
      return lines.map(({ column }) => ({ label: name, suffix: unit.suffix, column: moved(only ? within(column, only) : column, unit.factor, begin), place }));
    }),
  );
  return { strokes: read.flat(), left: [...missing] };
}

/** Only what is in a span: what is next to it is of another part. */
function within({ t, v, band }: Column, { from, to }: Span): Column {
  const [begin, end] = [lowerBound(t, from), lowerBound(t, to)];
  const part = (values: Float64Array) => values.subarray(begin, end);
  if (!band) return { t: part(t), v: part(v) };
  return { t: part(t), v: part(v), band: { min: part(band.min), q1: part(band.q1), q3: part(band.q3), max: part(band.max) } };
}

/** Returns the pixels for lines in a chart of this width. */
export function pixelsOf(width: number): number {
  return Math.max(64, Math.min(4000, Math.round(width - 74)));
}

export function stretchOf({ from, to }: Span, width: number): Stretch {
  return { from, to, px: pixelsOf(width) };
}
