/** What a chart over time is asked for: a window, metrics, and how they are drawn. Pure. */

import type { Mode } from './derive.ts';

export interface Span {
  from: number;
  to: number;
}

/** In place of a host: a line for each host that has the metric. */
export const EVERY_HOST = '*';

/** One metric on a chart: all its instances, or the one named. */
export interface MetricPick {
  /** A host's name, or `EVERY_HOST`. */
  host: string;
  source: string;
  metric: string;
  instance: string | null;
}

export interface ChartSpec {
  id: number;
  title: string;
  picks: MetricPick[];
  mode: Mode;
  log: boolean;
  /** Instances drawn of each metric, the busiest first. */
  top: number;
  /** One line, of the sum of all. */
  sum?: boolean;
}

/** A chart without its number. */
export type Chart = Omit<ChartSpec, 'id'>;
