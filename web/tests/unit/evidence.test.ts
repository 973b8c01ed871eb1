import { expect, test } from 'vitest';
import type { Evidence, Growth, Head, Level, SeriesName, LevelVerdict } from '../../src/data/model.ts';
import { axisOf } from '../../src/lib/axis.ts';
import { evidenceOf } from '../../src/lib/evidence.ts';
import { machineKind, verdictOf } from '../../src/lib/summary.ts';

const window = (index: number) => ({ begin_ns: index * 10e9 + 2e9, end_ns: index * 10e9 + 10e9 });
const level = (index: number, users: number, purpose: Level['purpose'] = 'sweep') => ({ index, users, purpose, window: window(index), result: {} }) as Level;
const head = {
  origin_ns: 0,
  run: { spec: { workload: null, process: null, performance_schema: null }, levels: [level(0, 1), level(1, 8), level(2, 64), level(3, 128), level(4, 256), level(5, 8, 'repeat')] },
  explanation: { growth: [] as Growth[] },
} as unknown as Head;
const runqueue: SeriesName = { host: 'server', source: 'server_process', metric: 'runqueue_ns', instance: 'server' };
const read = (series: SeriesName, index: number): Evidence => ({ is: 'series', series, ...window(index) });
const linksOf = (evidence: Evidence[]) => evidenceOf(evidence, head).map((group) => [group.name, group.links.map((link) => link.text).join(', ')]);

test('the windows of one series stand together, each named by its level', () => {
  expect(linksOf([read(runqueue, 1), read(runqueue, 2)])).toEqual([['runqueue_ns of server', 'at 8, at 64 users']]);
});

test('a window outside every level is named by its time', () => {
  expect(linksOf([{ is: 'series', series: runqueue, begin_ns: 70e9, end_ns: 75e9 }])).toEqual([['runqueue_ns of server', 'from 1:10 to 1:15']]);
});

test('levels are named one by one, the repeated one as such, and many of them together', () => {
  const levels = (...indexes: number[]): Evidence => ({ is: 'levels', quantity: 'transactions_per_s', levels: indexes });
  expect(linksOf([levels(1, 5)])).toEqual([['transactions/s', 'at 8, 8 users again']]);
  expect(linksOf([levels(0)])).toEqual([['transactions/s', 'at 1 user']]);
  expect(linksOf([levels(0, 1, 2, 3, 4)])).toEqual([['transactions/s', 'at all levels']]);
});

test('a guessed machine is called virtual only once', () => {
  expect(['', 'none', 'kvm', 'a virtual machine'].map(machineKind)).toEqual(['', '', 'a kvm virtual machine', 'a virtual machine']);
});

test('the headline is that of the explanation, which leads with what makes a result unusable', () => {
  const { run } = head;
  const levels = [{ users: 8 }] as LevelVerdict[];
  const headline = 'Not usable: throughput drifted. As measured, throughput peaks at 8 users: 846 transactions/s.';
  expect(verdictOf({ run, explanation: { ...head.explanation, levels, headline } })).toBe(headline);
  expect(verdictOf({ run: { ...run, ended: null }, explanation: { ...head.explanation, levels: [], headline: '' } })).toBe('This recording is running.');
});

test('a sweep over rates is against rates', () => {
  const at = (index: number, rate_per_s: number, held: boolean) => ({ ...level(index, 128), result: { rate_per_s, arrivals: { due: 1, held } } }) as Level;
  const run = { ...head.run, levels: [at(0, 500, true), at(1, 1000, true), at(2, 2000, false)] };
  expect(run.levels.map(axisOf(run).name)).toEqual(['500/s', '1,000/s', '2,000/s']);
  expect(axisOf(head.run).head).toBe('users');
  const same = { ...run, levels: [at(0, 500, true), at(1, 500, true)] };
  expect(axisOf(same).head).toBe('users');
});
