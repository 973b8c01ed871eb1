/** What charts over time have in common: the bands of levels, the marks of events, and the readings of lines. */

import type { Band, Line, Mark } from '../charts/timechart.ts';
import type { Column } from '../data/model.ts';
import { axisOf } from './axis.ts';
import type { Desk, Span } from './desk.svelte.ts';
import { lowerBound, nearest } from './envelope.ts';
import { cssColor, REGIME_COLOR } from './palette.ts';
import { withUnit } from './units.ts';

export function bandsOf(desk: Desk): Band[] {
  const { run } = desk.source.head;
  const axis = axisOf(run);
  return run.levels.flatMap((level) => {
    const regime = level.purpose === 'repeat' ? 'unknown' : (desk.verdict(level.index)?.regime ?? 'unknown');
    const about = {
      color: cssColor(REGIME_COLOR[regime]),
      label: `${axis.name(level)}${level.purpose === 'repeat' ? ' again' : ''}`,
      short: `${axis.short(level)}${level.purpose === 'repeat' ? ' again' : ''}`,
      faded: desk.chosen.length > 0 && !desk.chosen.includes(level.index),
    };
    const begin = desk.seconds(level.window.begin_ns);
    const warm = level.warmup.begin_ns > 0 ? desk.seconds(level.warmup.begin_ns) : begin;
    return [
      { ...about, from: warm, to: begin, warmup: true },
      { ...about, from: begin, to: desk.seconds(level.window.end_ns), warmup: false },
    ];
  });
}

export function eventMarks(desk: Desk): Mark[] {
  return desk.source.head.events
    .filter((event) => !event.kind.startsWith('level_'))
    .map((event) => ({
      t: desk.seconds(event.t_ns),
      color: cssColor(event.kind === 'error' ? '--bad' : event.kind.startsWith('gap') ? '--unknown' : '--mark'),
      // Gaps are listed under the charts: only actions have room for text.
      label: event.kind.startsWith('gap') ? '' : event.text,
    }));
}

/** Returns a line's value at the cursor, or its mean over the view. */
export function readingOf(line: Line, pointed: number | null, view: Span): string {
  if (pointed === null) return `mean ${withUnit(meanIn(line.column, view), line.suffix)}`;
  const index = nearest(line.column.t, pointed);
  const isNear = index >= 0 && Math.abs((line.column.t[index] as number) - pointed) < Math.max(2, (view.to - view.from) / 100);
  const { v, band } = line.column;
  if (!isNear) return 'gap';
  if (band) return `${withUnit(v[index] as number, line.suffix)} (${withUnit(band.min[index] as number, line.suffix)} … ${withUnit(band.max[index] as number, line.suffix)})`;
  return withUnit(v[index] as number, line.suffix);
}

function meanIn(column: Column, view: Span): number {
  let total = 0;
  let count = 0;
  for (let index = lowerBound(column.t, view.from); index < column.t.length; index++) {
    if ((column.t[index] as number) > view.to) break;
    const value = column.v[index] as number;
    if (Number.isFinite(value)) {
      total += value;
      count++;
    }
  }
  return count > 0 ? total / count : NaN;
}
