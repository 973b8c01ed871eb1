/** Finding a metric among thousands by typing parts of its name. Pure. */

import type { SeriesHead } from '../data/model.ts';
import { EVERY_HOST } from './chartspec.ts';

/** A metric with all its instances, of one host or of every host that has it. */
export interface Group {
  key: string;
  /** A host's name, or `EVERY_HOST`. */
  host: string;
  /** Hosts that have it. */
  hosts: number;
  source: string;
  metric: string;
  instances: number;
  /** No instance ever changed. */
  flat: boolean;
}

/** `overHosts`: a metric of several hosts is also a group of all of them, before those of one host each. */
export function groupsOf(series: SeriesHead[], overHosts = false): Group[] {
  const groups = new Map<string, Group>();
  for (const entry of series) {
    const key = JSON.stringify([entry.host, entry.source, entry.metric]);
    const group = groups.get(key);
    if (group) {
      group.instances++;
      group.flat &&= entry.flat;
    } else {
      groups.set(key, { key, host: entry.host, hosts: 1, source: entry.source, metric: entry.metric, instances: 1, flat: entry.flat });
    }
  }
  const each = [...groups.values()];
  if (!overHosts) return each;
  const ofMetric = new Map<string, Group[]>();
  for (const group of each) {
    const key = JSON.stringify([group.source, group.metric]);
    ofMetric.set(key, [...(ofMetric.get(key) ?? []), group]);
  }
  return [...ofMetric.values()].flatMap((same): Group[] => {
    const [first] = same;
    if (!first || same.length === 1) return same;
    const instances = Math.max(...same.map((group) => group.instances));
    const all = { ...first, key: `${EVERY_HOST} ${first.key}`, host: EVERY_HOST, hosts: same.length, instances, flat: same.every((group) => group.flat) };
    return [all, ...same];
  });
}

/** Groups in which every typed word occurs, best first: a metric that begins with it, one that holds it, then the source. */
export function search(groups: Group[], text: string): Group[] {
  const words = text.toLowerCase().split(/[\s/]+/).filter((word) => word !== '');
  const scored: { group: Group; score: number }[] = [];
  for (const group of groups) {
    const metric = group.metric.toLowerCase();
    const around = `${group.source} ${group.host}`.toLowerCase();
    let score = group.flat ? -0.5 : 0;
    let all = true;
    for (const word of words) {
      if (metric === word) score += 4;
      else if (metric.startsWith(word)) score += 3;
      else if (metric.includes(word)) score += 2;
      else if (around.includes(word)) score += 1;
      else all = false;
    }
    if (all) scored.push({ group, score });
  }
  scored.sort((a, b) => b.score - a.score || a.group.metric.localeCompare(b.group.metric));
  return scored.map((match) => match.group);
}
