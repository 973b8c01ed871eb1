/** Searches and sorts the list of runs. Pure. */

import { roughTime } from '../lib/words.ts';
import type { ListedRun, ListedStudy } from './api.ts';

/** A line of the list: a run, or a study with what of it a run has, too. */
export interface ListedEntry extends ListedRun {
  study?: ListedStudy;
}

export function entryOfStudy(study: ListedStudy): ListedEntry {
  return {
    id: study.id, workload: study.workload, server: study.servers.join(' and '), host: '', began_ms: study.began_ms, seconds: null, levels: 0, best: null,
    name: study.title, tags: [], set: [], per_s: [], verdict: study.verdict, cause: null, notes: [], bytes: 0, live: false, ended: 'complete', study,
  };
}

/** The name of a run's group: its workload and server. */
export function groupOf({ workload, server }: Pick<ListedRun, 'workload' | 'server'>): string {
  return server === '' ? workload : `${workload} on ${server}`;
}

/** Puts entries of the same group together, so many of each. Groups stand in the order of their first entries, and entries within a group in theirs. */
export function groupRuns<T extends ListedRun>(runs: T[], most: (group: string) => number): T[] {
  const groups = new Map<string, T[]>();
  for (const run of runs) {
    const group = groups.get(groupOf(run));
    if (group) group.push(run);
    else groups.set(groupOf(run), [run]);
  }
  return [...groups].flatMap(([group, members]) => members.slice(0, most(group)));
}

export type SortBy = 'began' | 'workload' | 'server' | 'best' | 'bytes';

/** Which entries are shown: those with this cause, this tag, this server and of this kind; an empty text is any. */
export interface RunFilter {
  cause: string;
  tag: string;
  server: string;
  /** "run" or "study". */
  kind: string;
}

export const ANY: RunFilter = { cause: '', tag: '', server: '', kind: '' };

export function filterRuns<T extends ListedEntry>(runs: T[], { cause, tag, server, kind }: RunFilter): T[] {
  if (cause === '' && tag === '' && server === '' && kind === '') return runs;
  const has = (run: T) => (cause === '' || run.cause?.id === cause) && (tag === '' || run.tags.includes(tag)) && (server === '' || run.server === server);
  return runs.filter((run) => has(run) && (kind === '' || (kind === 'study') === (run.study !== undefined)));
}

/** What can be filtered by, each with the number of its runs, the most first. */
export function choicesOf<T extends ListedRun>(runs: T[], of: (run: T) => string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const run of runs) for (const text of of(run)) if (text !== '') counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

export interface SortOrder {
  by: SortBy;
  down: boolean;
}

/** Runs in which every typed word occurs somewhere. */
export function searchRuns<T extends ListedEntry>(runs: T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return runs;
  return runs.filter((run) => {
    const cause = run.cause ? `${run.cause.id} ${run.cause.words}` : '';
    const searched = [run.id, run.name, ...run.tags, ...run.set, run.workload, run.server, run.host, cause, run.verdict ?? '', run.ended, run.study?.question ?? '', ...run.notes].join(' ').toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

export function sortRuns<T extends ListedRun>(runs: T[], { by, down }: SortOrder): T[] {
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

/** When a run began, in the reader's own zone. */
export function beganText(began_ms: number | null): string {
  if (began_ms === null) return '–';
  const date = new Date(began_ms);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
