/** The text about a moment of a run. Pure. */

import type { Head } from '../data/model.ts';
import { axisOf } from './axis.ts';

/** Created once: this takes longer than everything else at a move of the pointer. */
const CLOCK = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });

/** Wall time in the reader's own zone, by the anchor before it; to the millisecond where the moment is no whole second. */
export function wallTime(head: Pick<Head, 'run' | 'origin_ns'>, t: number): string {
  const ns = head.origin_ns + t * 1e9;
  const { anchors } = head.run;
  const nearest = anchors.findLast((anchor) => anchor.monotonic_ns <= ns) ?? anchors[0];
  if (!nearest) return '';
  const date = new Date((nearest.wall_ns + (ns - nearest.monotonic_ns)) / 1e6);
  const millis = Number.isInteger(t) ? '' : `.${String(date.getMilliseconds()).padStart(3, '0')}`;
  return CLOCK.format(date) + millis;
}

/** Returns the level at a moment as text; empty if the run has no levels. */
export function levelAt(head: Pick<Head, 'run' | 'origin_ns'>, t: number): string {
  const { run, origin_ns } = head;
  if (run.levels.length === 0) return '';
  const seconds = (ns: number) => (ns - origin_ns) / 1e9;
  const level = run.levels.find((level) => seconds(level.warmup.begin_ns || level.window.begin_ns) <= t && t < seconds(level.window.end_ns));
  if (!level) return 'between levels';
  return `${axisOf(run).name(level)}${t < seconds(level.window.begin_ns) ? ', warming up' : ''}`;
}
