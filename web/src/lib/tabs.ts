/** The tabs of a run's page: what lies below the answer. Pure. */

import type { Head } from '../data/model.ts';
import { functionSeries } from './functions.ts';
import { machinesOf } from './machines.ts';
import { processOf } from './runkind.ts';

export type TabId = 'time' | 'levels' | 'hosts' | 'functions' | 'threads' | 'statements' | 'locks' | 'counters' | 'findings' | 'settings';

export interface Tab {
  id: TabId;
  name: string;
}

const NAMES: Record<TabId, string> = {
  time: 'Over time',
  levels: 'Levels',
  hosts: 'Hosts',
  functions: 'Functions',
  threads: 'Threads',
  statements: 'Statements',
  locks: 'Locks',
  counters: 'Performance Schema',
  findings: 'Findings',
  settings: 'Settings',
};

export const FIRST_TAB: TabId = 'time';

/** The tab of hosts where there is one machine: then it has the programs only. */
const PROGRAMS = 'Programs';
const PROGRAM_SOURCES = ['neighbours', 'server_process'];

/** Names of parts in links of before there were tabs. */
const OLD_NAMES: Record<string, TabId> = { explorer: 'time', profile: 'threads', tables: 'statements' };

/** Tabs with something behind them, in their order. `isExplained`: what was found is known. */
export function tabsOf(head: Head, isExplained: boolean): Tab[] {
  const { run, explanation } = head;
  const isProcess = processOf(run) !== null;
  const hasSeveral = machinesOf(run, head.series).length > 1;
  const hasKinds = run.levels.some((level) => level.result.by_statement.length > 0 || (level.result.by_transaction?.length ?? 0) > 0);
  const has: Record<TabId, boolean> = {
    time: true,
    levels: !isProcess && (run.levels.length > 0 || (explanation.budgets?.length ?? 0) > 0),
    hosts: hasSeveral || head.series.some((entry) => PROGRAM_SOURCES.includes(entry.source)),
    functions: head.flame !== undefined || functionSeries(head.series).length > 0,
    threads: head.threads !== undefined || head.timeline !== undefined,
    statements: head.statements !== undefined || (!isProcess && hasKinds),
    locks: (head.locks?.length ?? 0) > 0,
    counters: (head.pfs?.levels.length ?? 0) > 0,
    findings: true,
    settings: true,
  };
  const ids = Object.keys(NAMES) as TabId[];
  return ids.filter((id) => id === FIRST_TAB || (isExplained && has[id])).map((id) => ({ id, name: id === 'hosts' && !hasSeveral ? PROGRAMS : NAMES[id] }));
}

/** Returns the tab that the part of an address after its # names; null if it names none. */
export function tabOfHash(hash: string): TabId | null {
  const name = hash.replace(/^#/, '');
  if (Object.hasOwn(NAMES, name)) return name as TabId;
  return Object.hasOwn(OLD_NAMES, name) ? (OLD_NAMES[name] as TabId) : null;
}
