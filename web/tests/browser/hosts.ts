/** A report of several hosts, made of the one that is tested: machines with their programs, over ten seconds. */

import type { Head, RecordedHost, SeriesHead } from '../../src/data/model.ts';
import { variant } from './report.ts';

const BLOCK = 200_000;
const SECONDS = 10;

/** [host, source, metric, instance, growth per second of a counter, or the value of a gauge, unit] */
type Row = [string, string, string, string, number, string?];
const GAUGES = ['total_bytes', 'available_bytes', 'offset_ns', 'bound_ns', 'resident_bytes'];

const rows: Row[] = [
  ...(['db', 'client', 'load-1'] as const).flatMap((host, place): Row[] => [
    [host, 'cpu', 'user_ns', 'all', 1.2e9 - place * 0.4e9], [host, 'cpu', 'system_ns', 'all', 0.7e9 - place * 0.3e9], [host, 'cpu', 'idle_ns', 'all', 0.1e9 + place * 0.7e9],
    [host, 'memory', 'total_bytes', '', 8 * 2 ** 30, 'bytes'], [host, 'memory', 'available_bytes', '', 6 * 2 ** 30, 'bytes'],
    [host, 'net', 'received_bytes', 'e0', 2 ** 20, 'bytes'], [host, 'net', 'sent_bytes', 'e0', 3 * 2 ** 20, 'bytes'],
    [host, 'neighbours', 'cpu_ns', `job-on-${host}`, 0.3e9], [host, 'neighbours', 'resident_bytes', `job-on-${host}`, 2 ** 28, 'bytes'],
  ]),
  ['db', 'watch', 'cpu_ns', 'status', 2e6], ['load-1', 'watch', 'cpu_ns', 'status', 1e6],
  ['db', 'disk', 'read_bytes', 'vda', 2 ** 21, 'bytes'], ['db', 'disk', 'write_bytes', 'vda', 2 ** 22, 'bytes'],
  ['db', 'server_process', 'run_ns', 'server', 1.1e9], ['client', 'generator_process', 'run_ns', 'generator', 0.5e9],
  ['db', 'clock', 'offset_ns', '', 86_400e9], ['db', 'clock', 'bound_ns', '', 180_000],
  ['load-1', 'clock', 'offset_ns', '', -2_000_000], ['load-1', 'clock', 'bound_ns', '', 90_000],
];

/** The report, and what removes it. `change`: what else differs. */
export function hostsReport(change: (head: Head) => void = () => undefined): { url: string; remove: () => void } {
  const times = Array.from({ length: SECONDS + 1 }, (_, second) => second * 1e6);
  const columns = rows.map(([, , metric, , value]) => times.map((_, second) => (GAUGES.includes(metric) ? value : second * value)));
  const host = (name: string, more: Partial<RecordedHost>) => ({ name, lost: 0, clock: [], facts: {}, ...more }) as unknown as RecordedHost;
  return variant(
    (head) => {
      const axis = head.axes.push({ block: BLOCK, slot: 0 }) - 1;
      head.run.hosts = [host('db', { has_server: true }), host('load-1', { lost: 3, problem: 'its end did not arrive' })];
      rows.forEach(([of, source, metric, instance, , unit], place) => {
        const kind: SeriesHead['kind'] = GAUGES.includes(metric) ? 'gauge' : 'counter';
        head.series.push({ host: of, source, metric, instance, kind, unit: unit ?? 'ns', axis, block: BLOCK, slot: place + 1, form: 'samples', flat: false });
      });
      change(head);
    },
    undefined,
    { [BLOCK]: [times, ...columns] },
  );
}
