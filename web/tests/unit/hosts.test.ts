import { describe, expect, it } from 'vitest';
import type { Column, Head, RecordedHost, RunInfo, SeriesHead } from '../../src/data/model.ts';
import { BlockSource } from '../../src/data/source.ts';
import { defaultCharts, machineCharts, titleOf } from '../../src/lib/chartsets.ts';
import { EVERY_HOST } from '../../src/lib/chartspec.ts';
import { expanded, hostIn, machinesOf, overHosts, serverHost } from '../../src/lib/machines.ts';
import { readUse, useOf } from '../../src/lib/machineuse.ts';
import { groupsOf, search } from '../../src/lib/picker.ts';
import { instancesOf, ofMetrics } from '../../src/lib/plot.ts';
import { tabsOf } from '../../src/lib/tabs.ts';
import { meanOver, mostOver, perSecondOver } from '../../src/lib/usage.ts';

const column = (v: number[], t = v.map((_, at) => at)): Column => ({ t: Float64Array.from(t), v: Float64Array.from(v) });
const series = (host: string, source: string, metric: string, instance = '', kind: 'counter' | 'gauge' = 'counter'): SeriesHead => ({
  host, source, metric, instance, kind, unit: 'ns', axis: 0, block: 0, slot: 0, form: 'samples', flat: false,
});
const host = (name: string, more: Partial<RecordedHost> = {}) => ({ name, lost: 0, clock: [], facts: {}, ...more }) as unknown as RecordedHost;
const run = (more: Partial<RunInfo>): RunInfo => ({ levels: [], ended: { how: 'complete', at_ns: 0 }, spec: {}, ...more }) as RunInfo;
const lab = run({ hosts: [host('load-1'), host('db', { has_server: true, lost: 2, problem: 'its end did not arrive' })] });

class FixedSource extends BlockSource {
  readonly head: Head;
  readonly #columns: Column[];

  constructor(list: SeriesHead[], columns: Column[], of = lab) {
    super();
    this.head = { run: of, series: list } as Head;
    this.#columns = columns;
  }

  override column(at: number): Promise<Column> {
    return Promise.resolve(this.#columns[at] as Column);
  }

  protected inflateBlock(): Promise<Uint8Array> {
    throw new Error('no blocks');
  }
}

describe('the machines of a recording', () => {
  it('are its hosts and its own machine, the server first', () => {
    const machines = machinesOf(lab, []);
    expect(machines.map(({ name, role, lost, problem }) => [name, role, lost, problem])).toEqual([
      ['db', 'server', 2, 'its end did not arrive'],
      ['client', 'load', 0, ''],
      ['load-1', 'other', 0, ''],
    ]);
    expect(serverHost(lab)).toBe('db');
  });

  it('are of the load where they sent a part of it, and then the own machine only records', () => {
    const levels = [{ result: { generators: [{ host: 'load-1' }] } }] as unknown as RunInfo['levels'];
    expect(machinesOf({ ...lab, levels }, []).map(({ name, role }) => [name, role])).toEqual([
      ['db', 'server'],
      ['load-1', 'load'],
      ['client', 'recorder'],
    ]);
  });

  it('miss nothing while they are recorded', () => {
    expect(machinesOf({ ...lab, ended: null }, [])[0]).toMatchObject({ name: 'db', problem: '' });
  });

  it('are one without agents: the one of the server, or the one that records', () => {
    expect(machinesOf(run({}), [series('server', 'cpu', 'user_ns', 'all')])).toMatchObject([{ name: 'server', role: 'server', hosts: ['server', 'client'] }]);
    expect(machinesOf(run({}), [series('client', 'cpu', 'user_ns', 'all'), series('server', 'status', 'Questions')])).toMatchObject([{ name: 'client', hosts: ['client'] }]);
  });

  it('have a tab where they are several, and programs have it where there is one', () => {
    const head = (of: RunInfo, list: SeriesHead[]) => ({ run: of, series: list, explanation: {} }) as unknown as Head;
    const name = (of: Head) => tabsOf(of, true).find((tab) => tab.id === 'hosts')?.name;
    expect(name(head(lab, []))).toBe('Hosts');
    expect(name(head(run({}), [series('server', 'server_process', 'run_ns', 'server')]))).toBe('Programs');
    expect(name(head(run({}), [series('server', 'status', 'Questions')]))).toBeUndefined();
  });

  it('name the host of the server in another recording', () => {
    const one = run({});
    expect(hostIn(one, 'db', lab)).toBe('server');
    expect(hostIn(lab, 'server')).toBe('db');
    expect(hostIn(lab, 'client', one)).toBe('client');
  });
});

describe('one metric over hosts', () => {
  const list = [series('load-1', 'cpu', 'user_ns', 'all'), series('db', 'cpu', 'user_ns', 'all'), series('db', 'disk', 'reads', 'vda'), series('db', 'disk', 'reads', 'vdb')];
  const pick = { host: EVERY_HOST, source: 'cpu', metric: 'user_ns', instance: 'all' };

  it('is offered by the picker, before the metric of each host', () => {
    const groups = groupsOf(list, true);
    expect(search(groups, 'user').map((group) => [group.host, group.hosts])).toEqual([[EVERY_HOST, 2], ['load-1', 1], ['db', 1]]);
    expect(groups.filter((group) => group.metric === 'reads').map((group) => group.host)).toEqual(['db']);
    expect(groupsOf(list).some((group) => group.host === EVERY_HOST)).toBe(false);
  });

  it('is a line for each of them, named by its host', async () => {
    const picks = expanded(list, pick, ['db', 'client', 'load-1']);
    expect(picks.map((each) => each.host)).toEqual(['db', 'load-1']);
    expect(instancesOf(list, pick)).toEqual([0, 1]);
    const source = new FixedSource(list, [column([0, 2e9]), column([0, 1e9]), column([0, 1]), column([0, 2])]);
    const how = { mode: 'rate', top: 5, sum: false } as const;
    const stretch = { from: 0, to: 10, px: 100 };
    const { strokes } = await ofMetrics(source, picks.map((each) => instancesOf(list, each)), how, stretch, new AbortController().signal);
    expect(strokes.map(({ label, suffix, column }) => [label, suffix, column.v[0]])).toEqual([['db', 'CPUs', 1], ['load-1', 'CPUs', 2]]);
    const mixed = await ofMetrics(source, [[0], [2, 3]], how, stretch, new AbortController().signal);
    expect(mixed.strokes.map((stroke) => stroke.label)).toEqual(['load-1 user_ns', 'db reads vda', 'db reads vdb']);
  });

  it('is of the instance that is all of them, or of their sum', () => {
    const more = [...list, series('db', 'cpu', 'user_ns', 'cpu0')];
    expect(overHosts(more, { ...pick, host: 'db', instance: null })).toEqual({ pick, sum: false });
    expect(overHosts(more, { ...pick, source: 'disk', metric: 'reads', instance: null })).toEqual({ pick: { ...pick, source: 'disk', metric: 'reads', instance: null }, sum: true });
    expect(overHosts(more, { ...pick, instance: 'cpu0' }).pick.instance).toBe('cpu0');
  });

  it('is named by its host where there are several', () => {
    expect([titleOf(pick, 3), titleOf({ ...pick, host: 'db' }, 3), titleOf({ ...pick, host: 'server' }, 1)]).toEqual(['user_ns of every host', 'user_ns of db', 'user_ns']);
  });
});

describe('sets of charts', () => {
  const list = [series('client', 'cpu', 'user_ns', 'all'), series('db', 'cpu', 'user_ns', 'all'), series('db', 'neighbours', 'cpu_ns', 'sh'), series('db', 'server_process', 'run_ns', 'server')];

  it('of a run are of the machine of its server', () => {
    const [cpu] = defaultCharts({ run: lab, series: list });
    expect([cpu?.title, cpu?.picks[0]?.host]).toEqual(['CPU of db', 'db']);
    expect(defaultCharts({ run: run({}), series: [series('server', 'cpu', 'user_ns', 'all')] })[0]?.title).toBe('CPU of the machine');
  });

  it('of a machine have what was recorded of it', () => {
    const db = machinesOf(lab, list)[0];
    const charts = db ? machineCharts(db, list) : [];
    expect(charts.map((chart) => [chart.title, chart.picks.map((pick) => `${pick.host} ${pick.metric}`)])).toEqual([
      ['CPU of db', ['db user_ns']],
      ['CPU by program of db', ['db run_ns', 'db cpu_ns']],
    ]);
  });
});

describe('what a machine used over a window', () => {
  it('is the growth of counters, in proportion at its edges and across resets', () => {
    expect(perSecondOver(column([0, 10, 20, 30]), { from: 0.5, to: 2 })).toBe(10);
    expect(perSecondOver(column([100, 110, 4, 8]), { from: 0, to: 3 })).toBeCloseTo((10 + 4 + 4) / 3);
    expect(perSecondOver(column([0, NaN, 20]), { from: 0, to: 2 })).toBe(10);
    // Only the first of five seconds was read.
    expect(perSecondOver(column([0, 7]), { from: 0, to: 5 })).toBe(7);
    expect([perSecondOver(column([3]), { from: 0, to: 5 }), perSecondOver(column([3, 4]), { from: 8, to: 9 })]).toEqual([null, null]);
  });

  it('is the mean or the greatest of gauges, or what was read last', () => {
    const gauge = column([1, 3, NaN, 8]);
    expect([meanOver(gauge, { from: 0, to: 2 }), mostOver(gauge, { from: 0, to: 2 })]).toEqual([2, 3]);
    expect([meanOver(gauge, { from: 4, to: 5 }), mostOver(gauge, { from: 4, to: 5 })]).toEqual([8, 8]);
    expect([meanOver(column([]), { from: 0, to: 1 }), mostOver(column([NaN]), { from: 0, to: 1 })]).toEqual([null, null]);
  });

  const cpu = (metric: string, per_s: number): [SeriesHead, Column] => [series('db', 'cpu', metric, 'all'), column([0, per_s, 2 * per_s])];
  const recorded: [SeriesHead, Column][] = [
    cpu('user_ns', 1.2e9), cpu('system_ns', 0.3e9), cpu('idle_ns', 0.5e9),
    [series('db', 'memory', 'total_bytes', '', 'gauge'), column([100, 100])],
    [series('db', 'memory', 'available_bytes', '', 'gauge'), column([75, 75])],
    [series('db', 'disk', 'read_bytes', 'dm-0'), column([0, 5])], [series('db', 'disk', 'write_bytes', 'dm-0'), column([0, 5])],
    [series('db', 'disk', 'read_bytes', 'vda'), column([0, 7])], [series('db', 'disk', 'write_bytes', 'vda'), column([0, 5])],
    [series('db', 'net', 'received_bytes', 'lo'), column([0, 900])], [series('db', 'net', 'received_bytes', 'e0'), column([0, 40])], [series('db', 'net', 'sent_bytes', 'e0'), column([0, 50])],
    [series('db', 'clock', 'offset_ns', '', 'gauge'), column([-4e6, -4e6])], [series('db', 'clock', 'bound_ns', '', 'gauge'), column([2e5, 1e5])],
    [series('db', 'server_process', 'run_ns', 'server'), column([0, 0.9e9])],
    [series('db', 'neighbours', 'cpu_ns', 'backup'), column([0, 0.4e9])], [series('db', 'neighbours', 'resident_bytes', 'backup', 'gauge'), column([9, 9])],
    [series('db', 'neighbours', 'cpu_ns', 'cron'), column([0, 0])],
    [series('db', 'programs', 'sampled_ns', 'backup'), column([0, 0.4e9])], [series('db', 'programs', 'sampled_ns', 'cron'), column([0, 0])],
    [series('db', 'programs', 'function_ns', 'backup: deflate'), column([0, 0.1e9])], [series('db', 'programs', 'function_ns', 'backup: std::sort: inner'), column([0, 0.3e9])],
    [series('db', 'programs', 'function_ns', 'backup2: other'), column([0, 0.3e9])], [series('load-1', 'programs', 'function_ns', 'backup: elsewhere'), column([0, 1e9])],
    [series('load-1', 'neighbours', 'cpu_ns', 'elsewhere'), column([0, 1e9])],
  ];

  it('is shown of each machine with its programs, and what is left of the busy time is no program', async () => {
    const source = new FixedSource(recorded.map(([about]) => about), recorded.map(([, values]) => values));
    const db = machinesOf(lab, []).filter((machine) => machine.name === 'db');
    const [use] = await readUse(source, db, { from: 0, to: 2 }, 'MariaDB');
    expect(use).toMatchObject({
      cpus: 2, memory_bytes: 100, memory_used: 0.25,
      disk: { name: 'vda', read_per_s: 7, written_per_s: 5 }, network: { received_per_s: 40, sent_per_s: 50 }, clock: { offset_ns: -4e6, bound_ns: 2e5 },
    });
    expect(use?.shares).toMatchObject({ user: 0.6, system: 0.15, iowait: 0 });
    expect(use?.programs?.map(({ kind, name, cpus }) => [kind, name, Math.round(cpus * 100)])).toEqual([['server', 'MariaDB', 90], ['program', 'backup', 40], ['rest', '', 20]]);
    expect(use?.programs?.[1]).toMatchObject({ resident_bytes: 9, disk_per_s: null });
    expect(use?.programs?.map(({ functions }) => functions.map(({ name, share }) => [name, Math.round(share * 100)]))).toEqual([[], [['std::sort: inner', 75], ['deflate', 25]], []]);
  });

  it('is unknown where nothing was read', () => {
    const [db] = machinesOf(lab, []);
    if (!db) throw new Error('no machine');
    expect(useOf(db, [], { from: 0, to: 1 }, 's')).toMatchObject({ cpus: null, shares: null, memory_used: null, disk: null, network: null, clock: null, programs: null });
  });
});
