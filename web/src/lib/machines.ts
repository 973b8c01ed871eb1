/** The machines of a recording, and which hosts of series are of each. Pure. */

import type { RunInfo, SeriesHead } from '../data/model.ts';
import { EVERY_HOST, type MetricPick } from './chartspec.ts';
import { isRecorded } from './runkind.ts';

/** The host of what the recorder's own machine did. */
export const CLIENT = 'client';
/** The host of the run's server where no agent recorded it. */
export const SERVER = 'server';

/** The instance that stands for all others of a metric. */
const ALL = 'all';

export type MachineRole = 'server' | 'load' | 'recorder' | 'other';

export interface Machine {
  /** The host of its series. */
  name: string;
  role: MachineRole;
  /** All hosts whose series are of it. */
  hosts: string[];
  /** What an agent could not hand over, in pieces. */
  lost: number;
  /** Why its part is not whole; empty where it is, and while it is being recorded. */
  problem: string;
  /** An agent recorded it, so that its clock is another one. */
  hasOwnClock: boolean;
}

type MachineRun = Pick<RunInfo, 'levels' | 'ended'> & Partial<Pick<RunInfo, 'hosts' | 'nodes'>>;
type SeriesName = Pick<SeriesHead, 'host' | 'source'>;

/** Returns the machines, the server's first. */
export function machinesOf(run: MachineRun, series: SeriesName[]): Machine[] {
  const whole = { lost: 0, problem: '', hasOwnClock: false };
  const loaders = new Set(run.levels.flatMap((level) => (level.result.generators ?? []).map((part) => part.host)));
  const ownRole: MachineRole = isRecorded(run) || loaders.size > 0 ? 'recorder' : 'load';
  const hosts = run.hosts ?? [];
  if (hosts.length === 0) {
    const hasServer = series.some((entry) => entry.host === SERVER && entry.source === 'cpu');
    // Programs that were recorded together with a server are other programs of its machine.
    const nodes = (run.nodes ?? []).filter((node) => node.role !== 'program').map((node) => node.name);
    return [{ ...whole, name: hasServer ? SERVER : CLIENT, role: hasServer ? 'server' : ownRole, hosts: hasServer ? [SERVER, CLIENT, ...nodes] : [CLIENT] }];
  }
  const machines = hosts.map((host): Machine => ({
    name: host.name,
    role: host.has_server ? 'server' : loaders.has(host.name) ? 'load' : 'other',
    hosts: [host.name],
    lost: host.lost,
    // Until the end has arrived, nothing is missing.
    problem: run.ended === null ? '' : (host.problem ?? ''),
    hasOwnClock: true,
  }));
  machines.push({ ...whole, name: CLIENT, role: ownRole, hosts: [CLIENT] });
  const order: MachineRole[] = ['server', 'load', 'recorder', 'other'];
  return machines.sort((a, b) => order.indexOf(a.role) - order.indexOf(b.role));
}

/** Returns the host of the run's server. */
export function serverHost(run: Partial<Pick<RunInfo, 'hosts'>>): string {
  return run.hosts?.find((host) => host.has_server)?.name ?? SERVER;
}

/** Hosts that have a metric, in the order of `first`, then as they are recorded. */
export function hostsWith(series: SeriesHead[], pick: Omit<MetricPick, 'host'>, first: string[] = []): string[] {
  const found = new Set<string>();
  for (const entry of series) {
    const isNamed = entry.source === pick.source && entry.metric === pick.metric;
    if (isNamed && (pick.instance === null || entry.instance === pick.instance)) found.add(entry.host);
  }
  return [...first.filter((host) => found.has(host)), ...[...found].filter((host) => !first.includes(host))];
}

/** One pick for each host that is meant. */
export function expanded(series: SeriesHead[], pick: MetricPick, first: string[] = []): MetricPick[] {
  if (pick.host !== EVERY_HOST) return [pick];
  const hosts = hostsWith(series, pick, first);
  return hosts.length === 0 ? [pick] : hosts.map((host) => ({ ...pick, host }));
}

/** A metric over all hosts as a chart draws it: a line for each host, of the instance that is all of them or of the sum. */
export function overHosts(series: SeriesHead[], { source, metric, instance }: MetricPick): { pick: MetricPick; sum: boolean } {
  const found = series.filter((entry) => entry.source === source && entry.metric === metric && (instance === null || entry.instance === instance));
  const all = instance ?? (found.some((entry) => entry.instance === ALL) ? ALL : null);
  const hosts = new Set(found.map((entry) => entry.host));
  return { pick: { host: EVERY_HOST, source, metric, instance: all }, sum: all === null && found.length > hosts.size };
}

/** What another recording calls the host: the machine of the server has a name of its own where an agent recorded it. */
export function hostIn(run: Partial<Pick<RunInfo, 'hosts'>>, host: string, from: Partial<Pick<RunInfo, 'hosts'>> = {}): string {
  return host === SERVER || host === serverHost(from) ? serverHost(run) : host;
}
