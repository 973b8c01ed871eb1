/** Searches and sorts the list of runs. Pure. */

import { roughTime } from '../lib/words.ts';
import type { ListedRun } from './api.ts';

export type SortBy = 'began' | 'workload' | 'server' | 'best' | 'bytes';

export interface SortOrder {
  by: SortBy;
  down: boolean;
}

/** Runs in which every typed word occurs somewhere. */
export function searchRuns(runs: ListedRun[], text: string): ListedRun[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return runs;
  return runs.filter((run) => {
    const searched = [run.id, run.workload, run.server, run.host, run.verdict ?? '', run.ended, ...run.notes].join(' ').toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

export function sortRuns(runs: ListedRun[], { by, down }: SortOrder): ListedRun[] {
  const of: Record<SortBy, (run: ListedRun) => string | number> = {
    began: (run) => run.began_ms ?? 0,
    workload: (run) => run.workload,
    server: (run) => run.server,
    best: (run) => run.best?.transactions_per_s ?? -1,
    bytes: (run) => run.bytes,
  };
  const compare = (a: string | number, b: string | number) =>
    typeof a === 'string' && typeof b === 'string' ? a.localeCompare(b, undefined, { numeric: true }) : Number(a) - Number(b);
  const order = [...runs].sort((a, b) => compare(of[by](a), of[by](b)) || (a.id < b.id ? -1 : 1));
  return down ? order.reverse() : order;
}

/** How long a run took; "–" for one that has not ended. */
export function lengthText(seconds: number | null): string {
  return seconds !== null && seconds > 0 ? roughTime(seconds) : '–';
}
