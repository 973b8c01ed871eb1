/** Sets of charts over time: those that a run opens with, and those of one machine. Pure. */

import type { Head, SeriesHead } from '../data/model.ts';
import { EVERY_HOST, type Chart, type MetricPick } from './chartspec.ts';
import { machinesOf, serverHost, SERVER, type Machine } from './machines.ts';

type NamedSeries = Pick<SeriesHead, 'host' | 'source' | 'metric' | 'instance' | 'flat'>;

const CPU = ['user_ns', 'system_ns', 'iowait_ns', 'steal_ns', 'idle_ns'];

/** What a chart of one metric is called; the host is part of it where there are several machines. */
export function titleOf({ metric, host }: MetricPick, machines: number): string {
  if (host === EVERY_HOST) return `${metric} of every host`;
  return machines > 1 ? `${metric} of ${host}` : metric;
}

/** The charts that a run opens with: those of them whose metrics were recorded. Of several machines, they are of the server's. */
export function defaultCharts({ run, series }: Pick<Head, 'run' | 'series'>): Chart[] {
  const charts: Chart[] = [];
  const first = [serverHost(run), SERVER];
  const place = (host: string) => (first.includes(host) ? first.indexOf(host) : first.length);
  const ordered = series.toSorted((a, b) => place(a.host) - place(b.host));
  const add = (title: string, picks: MetricPick[], more: Partial<Chart> = {}) => {
    if (picks.length > 0) charts.push({ title, picks, mode: 'rate', log: false, top: 5, ...more });
  };
  const find = (source: string, metrics: string[], instance: string | null): MetricPick[] =>
    metrics.flatMap((metric) => {
      const match = ordered.find(
        (recorded) => recorded.source === source && recorded.metric === metric && (instance === null || recorded.instance === instance),
      );
      return match ? [{ host: match.host, source, metric, instance }] : [];
    });
  const firstOf = (...choices: MetricPick[][]): MetricPick[] => choices.find((picks) => picks.length > 0) ?? [];
  const hasSeveral = machinesOf(run, series).length > 1;
  const of = (picks: MetricPick[]) => (hasSeveral && picks[0] ? ` of ${picks[0].host}` : '');

  add(
    'Throughput',
    firstOf(find('load', ['transactions_per_s_100ms'], 'transaction'), find('load', ['per_s'], 'transaction')),
  );
  add('Latency of a transaction', find('load', ['latency_mean_ms', 'latency_p95_ms', 'latency_p99_ms'], 'transaction'), {
    log: true,
  });
  const cpu = firstOf(...['', 'all', 'total', 'cpu'].map((instance) => find('cpu', CPU, instance)));
  add(hasSeveral ? `CPU${of(cpu)}` : 'CPU of the machine', cpu);
  const rows = ['Innodb_rows_read', 'Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted'];
  add('InnoDB rows', find('status', rows, null), { log: true });
  const disk = firstOf(find('disk', ['write_bytes'], null), find('disk', ['written_bytes'], null));
  add(`Disk writes${of(disk)}`, disk, { top: 3 });
  add('Threads running', find('status', ['Threads_running'], null));
  if (charts.length > 0) return charts;

  // None of those were recorded: whatever moves is better than nothing.
  const moving = new Map(ordered.filter((entry) => !entry.flat).map((entry) => [`${entry.host} ${entry.source} ${entry.metric}`, entry]));
  for (const { host, source, metric } of [...moving.values()].slice(0, 4)) {
    add(metric, [{ host, source, metric, instance: null }]);
  }
  return charts;
}

/** Several metrics of one machine: those of them that were recorded. */
export function machineCharts({ name, hosts }: Machine, series: NamedSeries[]): Chart[] {
  const find = (source: string, metrics: string[], instance: string | null): MetricPick[] =>
    metrics.flatMap((metric) => {
      const match = series.find((entry) => hosts.includes(entry.host) && entry.source === source && entry.metric === metric && (instance === null || entry.instance === instance));
      return match ? [{ host: match.host, source, metric, instance }] : [];
    });
  const programs = [
    ...find('server_process', ['run_ns'], 'server'),
    ...find('neighbours', ['cpu_ns', 'clients_cpu_ns', 'unclear_cpu_ns'], null),
    ...find('generator_process', ['run_ns'], 'generator'),
  ];
  const sets: [string, MetricPick[], number][] = [
    ['CPU', find('cpu', CPU, 'all'), 5],
    ['CPU by program', programs, 5],
    ['Memory', find('memory', ['available_bytes', 'cached_bytes', 'anonymous_bytes', 'dirty_bytes'], null), 5],
    ['Disks', find('disk', ['read_bytes', 'write_bytes'], null), 3],
    ['Network', find('net', ['received_bytes', 'sent_bytes'], null), 3],
    ['Clock error bound', find('clock', ['bound_ns'], null), 1],
  ];
  return sets.flatMap(([what, picks, top]): Chart[] => (picks.length === 0 ? [] : [{ title: `${what} of ${name}`, picks, mode: 'rate', log: false, top }]));
}
