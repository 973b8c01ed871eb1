/** Searches and sorts the list of runs. Pure. */

import { roughTime } from '../lib/words.ts';
import type { ListedRun } from './api.ts';

export type SortBy = 'began' | 'workload' | 'server' | 'best' | 'bytes';

/** Which runs are shown: those with this cause, this tag and this server; an empty text is any. */
export interface RunFilter {
  cause: string;
  tag: string;
  server: string;
}

export const ANY: RunFilter = { cause: '', tag: '', server: '' };

export function filterRuns(runs: ListedRun[], { cause, tag, server }: RunFilter): ListedRun[] {
  if (cause === '' && tag === '' && server === '') return runs;
  return runs.filter((run) => (cause === '' || run.cause?.id === cause) && (tag === '' || run.tags.includes(tag)) && (server === '' || run.server === server));
}

/** What can be filtered by, each with the number of its runs, the most first. */
export function choicesOf(runs: ListedRun[], of: (run: ListedRun) => string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const run of runs) for (const text of of(run)) if (text !== '') counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

export interface SortOrder {
  by: SortBy;
  down: boolean;
}

/** Runs in which every typed word occurs somewhere. */
export function searchRuns(runs: ListedRun[], text: string): ListedRun[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return runs;
  return runs.filter((run) => {
    const cause = run.cause ? `${run.cause.id} ${run.cause.words}` : '';
    const searched = [run.id, run.name, ...run.tags, ...run.set, run.workload, run.server, run.host, cause, run.verdict ?? '', run.ended, ...run.notes].join(' ').toLowerCase();
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
