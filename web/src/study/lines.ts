/** Lines of a study's charts, built from the data of the page. Pure. */

import { LINE_COLORS } from '../lib/palette.ts';
import { count } from '../lib/words.ts';
import type { Course, Curve, Place } from './model.ts';

export interface ChartPoint {
  x: number;
  y: number;
  low?: number;
  high?: number;
  /** Text next to the value under the pointer. */
  note?: string;
}

export interface ChartLine {
  name: string;
  /** Which of the colours, dashes and marks it takes. */
  style: number;
  points: ChartPoint[];
}

export interface Panel {
  title: string;
  /** Its axis need not begin at 0. */
  mayBeCut?: boolean;
  lines: ChartLine[];
}

export interface Change {
  x: number;
  label: string;
}

export const colorOf = (style: number): string => `var(${LINE_COLORS[style % LINE_COLORS.length]})`;
/** The ninth line has the first one's colour again, and dashes. */
export const dashOf = (style: number): string => ['', '7 3', '2 3', '9 3 2 3'][Math.floor(style / LINE_COLORS.length) % 4] ?? '';

/** A mark around 0,0, so that no line is recognized only by its colour. */
export function markOf(style: number, size = 4): string {
  const half = size.toFixed(1);
  const wide = (size * 1.3).toFixed(1);
  switch (style % 5) {
    case 0: return `M-${half},0a${half},${half} 0 1,0 ${2 * size},0a${half},${half} 0 1,0 -${2 * size},0z`;
    case 1: return `M-${half},-${half}h${2 * size}v${2 * size}h-${2 * size}z`;
    case 2: return `M0,-${wide}L${wide},0L0,${wide}L-${wide},0z`;
    case 3: return `M0,-${wide}L${wide},${half}H-${wide}z`;
    default: return `M0,${wide}L${wide},-${half}H-${wide}z`;
  }
}

/** Names in their order with a style each; those that are not among `first` come after it. */
export function styles(first: string[], names: string[]): Map<string, number> {
  return new Map([...new Set([...first, ...names])].map((name, at) => [name, at]));
}

export function placeLines(place: Place, variants: string[]): ChartLine[] {
  const lines = variants.map((name, style) => ({
    name,
    style,
    points: place.points
      .filter((point) => point.variant === name)
      .map((point): ChartPoint => {
        const note = [point.tuning, point.unstable ? 'its starts differ by more than 15 %' : '', count(point.starts, 'start')];
        return { x: point.users, y: point.mean, ...bounds(point.mean95), note: note.filter((text) => text !== '').join('; ') };
      }),
  }));
  return lines.filter((line) => line.points.length > 0);
}

export interface CourseChart {
  title: string;
  users: number;
  panels: Panel[];
  changes: Change[];
}

/** One chart for each number of users in each place, with a panel for each measure; what is compared comes first. */
export function courseCharts(courses: Course[], style: Map<string, number>, words: Record<string, string>, metric: string): CourseChart[] {
  const isOnePlace = new Set(courses.map((course) => `${course.server}\n${course.condition}`)).size === 1;
  const groups = by(courses, (course) => `${course.users}\n${course.server}\n${course.condition}`);
  return [...groups.values()].map((group) => {
    const [first] = group as [Course, ...Course[]];
    const names = [...new Set(group.flatMap((course) => course.moments.flatMap((moment) => Object.keys(moment.measures))))];
    const isMetric = (name: string) => words[name] === metric;
    const ordered = [...names.filter(isMetric), ...names.filter((name) => !isMetric(name))];
    const panels = ordered.map((name) => ({
      title: words[name] ?? name,
      mayBeCut: !isMetric(name),
      lines: group.map((course) => ({
        name: course.label,
        style: style.get(course.label) ?? 0,
        points: course.moments.flatMap((moment) => (moment.measures[name] === undefined ? [] : [{ x: moment.at_s, y: moment.measures[name] }])),
      })),
    }));
    return { title: isOnePlace ? '' : [first.server, first.condition].filter((part) => part !== '').join(' · '), users: first.users, panels, changes: changesOf(group) };
  });
}

/** Each change once, with whose it is where not all have it. */
function changesOf(group: Course[]): Change[] {
  const found = by(
    group.flatMap((course) => course.resized.map((change) => ({ ...change, of: course.label }))),
    (change) => `${change.at_s}\n${change.what}`,
  );
  return [...found.values()].flatMap((same) => {
    const [first] = same;
    if (!first) return [];
    const label = same.length === group.length ? first.what : `${first.what} (${same.map((change) => change.of).join(', ')})`;
    return [{ x: first.at_s, label }];
  });
}

/** An execution's time over the knob, and the counters below it. */
export function curvePanels(curves: Curve[], style: Map<string, number>): Panel[] {
  const counters = [...new Set(curves.flatMap((curve) => curve.points.flatMap((point) => Object.keys(point.status))))];
  const panel = (title: string, of: (point: Curve['points'][number]) => ChartPoint | null): Panel => ({
    title,
    lines: curves.map((curve) => ({ name: curve.name, style: style.get(curve.name) ?? 0, points: curve.points.flatMap((point) => of(point) ?? []) })),
  });
  return [
    panel('execution, ms', (point) => ({ x: point.value, y: point.ms, ...bounds(point.ms95) })),
    ...counters.map((name) =>
      panel(`${name}/execution`, (point) => (point.status[name] === undefined ? null : { x: point.value, y: point.status[name] })),
    ),
  ];
}

/** In groups of one key each, in the order in which keys are first met. */
function by<One>(all: One[], key: (item: One) => string): Map<string, One[]> {
  const groups = new Map<string, One[]>();
  for (const item of all) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

function bounds(interval: [number, number] | null): { low?: number; high?: number } {
  return interval === null ? {} : { low: interval[0], high: interval[1] };
}
