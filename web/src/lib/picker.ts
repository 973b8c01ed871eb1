/** Finding a metric among thousands by typing parts of its name. Pure. */

import type { SeriesHead } from '../data/model.ts';

/** A metric with all its instances. */
export interface Group {
  key: string;
  host: string;
  source: string;
  metric: string;
  instances: number;
  /** No instance ever changed. */
  flat: boolean;
}

export function groupsOf(series: SeriesHead[]): Group[] {
  const groups = new Map<string, Group>();
  for (const entry of series) {
    const key = JSON.stringify([entry.host, entry.source, entry.metric]);
    const group = groups.get(key);
    if (group) {
      group.instances++;
      group.flat &&= entry.flat;
    } else {
      groups.set(key, { key, host: entry.host, source: entry.source, metric: entry.metric, instances: 1, flat: entry.flat });
    }
  }
  return [...groups.values()];
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
