/** The evidence of a finding as text, with links grouped by what they lead to. Pure. */

import type { Evidence, Head, Level, SeriesName, Window } from '../data/model.ts';
import { type Axis, axisOf } from './axis.ts';
import { isRecorded, processOf } from './runkind.ts';
import { clock } from './words.ts';

export interface Link {
  text: string;
  evidence: Evidence;
}

/** One quantity or series, and the places at which it was read. */
export interface EvidenceGroup {
  name: string;
  /** The meaning of the name, if known. */
  why: string;
  links: Link[];
}

const QUANTITIES: Record<string, string> = {
  transactions_per_s: 'transactions/s',
  queries_per_s: 'queries/s',
  bins_100ms: 'throughput',
  latency_mean_ms: 'mean latency',
  latency_p99_ms: 'p99 latency',
  cpu: 'CPU use',
};

/** More levels than this are "all levels" or "8 levels", and not named one by one. */
const NAMED_LEVELS = 4;

export function evidenceOf(evidence: Evidence[], head: Head): EvidenceGroup[] {
  const groups: EvidenceGroup[] = [];
  const put = (name: string, why: string, link: Link) => {
    const group = groups.find((group) => group.name === name);
    if (!group) groups.push({ name, why, links: [link] });
    else if (!group.links.some((candidate) => candidate.text === link.text)) group.links.push(link);
  };
  for (const [order, item] of evidence.entries()) {
    if (item.is === 'levels') {
      const isOfRequests = item.quantity === 'transactions_per_s' && isRecorded(head.run);
      const name = isOfRequests ? 'requests/s' : QUANTITIES[item.quantity] ?? item.quantity.replace(/_per_s$/, '/s').replace(/_ms$/, '').replaceAll('_', ' ');
      put(name, '', { text: levelsText(item.levels, head), evidence: item });
    } else if (item.is === 'series') {
      put(seriesName(item.series), meaningOf(item.series, head), { text: windowText(item, isSameSeries(item, evidence[order + 1]), head), evidence: item });
    } else {
      put('', '', { text: factName(item.path), evidence: item });
    }
  }
  return groups;
}

/** "runqueue_ns of server". */
export function seriesName(series: SeriesName): string {
  return series.instance === '' ? series.metric : `${series.metric} of ${series.instance}`;
}

function factName(path: string): string {
  if (path === 'not_measured') return 'what was not measured';
  return path.split('.').at(-1) ?? path;
}

function levelsText(indexes: number[], head: Head): string {
  const levels = indexes.flatMap((index) => head.run.levels.find((level) => level.index === index) ?? []);
  const swept = head.run.levels.filter((level) => level.purpose === 'sweep').length;
  if (levels.length > NAMED_LEVELS) return levels.length >= swept ? 'at all levels' : `at ${levels.length} levels`;
  const axis = axisOf(head.run);
  const names = levels.map((level, order) => (order === levels.length - 1 ? levelName(level, axis) : shortName(level, axis)));
  return `at ${names.join(', ')}`;
}

function isSameSeries(item: Evidence, next: Evidence | undefined): boolean {
  return item.is === 'series' && next?.is === 'series' && isSame(item.series, next.series);
}

/** Of neighbouring links, only the last has the unit "users". */
function windowText({ begin_ns, end_ns }: Window, isFollowed: boolean, head: Head): string {
  const middle = (begin_ns + end_ns) / 2;
  const level = head.run.levels.find((level) => level.window.begin_ns <= middle && middle <= level.window.end_ns);
  const axis = axisOf(head.run);
  if (level && processOf(head.run) === null) return `at ${isFollowed ? shortName(level, axis) : levelName(level, axis)}`;
  const seconds = (ns: number) => clock((ns - head.origin_ns) / 1e9);
  return `from ${seconds(begin_ns)} to ${seconds(end_ns)}`;
}

const again = (level: Level) => (level.purpose === 'repeat' ? ' again' : '');
const shortName = (level: Level, axis: Axis) => `${axis.short(level)}${again(level)}`;
const levelName = (level: Level, axis: Axis) => `${axis.name(level)}${again(level)}`;

function meaningOf(series: SeriesName, head: Head): string {
  return head.explanation.growth.find((row) => isSame(row.series, series))?.meaning ?? '';
}

function isSame(a: SeriesName, b: SeriesName): boolean {
  return a.host === b.host && a.source === b.source && a.metric === b.metric && a.instance === b.instance;
}
