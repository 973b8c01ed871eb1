import { expect, test } from 'vitest';
import type { SamplesHead } from '../../src/data/model.ts';
import { EVERYTHING, hasThread, hasWork, filterText, numbersIn, stretchIn, type Filter } from '../../src/lib/filter.ts';
import { filteredTime, marksOf, overTime, samplesOf, stretchesAround } from '../../src/lib/samples.ts';

const filterOf = (part: Partial<Filter>): Filter => ({ ...EVERYTHING, ...part });

test('a thread is shown that meets every condition', () => {
  const thread = { tid: 7, name: 'ib_Purge', role: 'purge' };
  expect(hasThread(filterOf({ role: 'purge', name: 'IB_', tids: new Set([7, 8]) }), thread)).toBe(true);
  expect(hasThread(filterOf({ role: 'io' }), thread)).toBe(false);
  expect(hasThread(filterOf({ name: 'wkr' }), thread)).toBe(false);
  expect(hasThread(filterOf({ tids: new Set([8]) }), thread)).toBe(false);
});

test('work whose connection or statement is not known does not meet a condition on it', () => {
  const of = (connection: number | null, statement: string) => ({ connection, statement });
  expect(hasWork(filterOf({ statement: 'commit' }), of(null, 'COMMIT'))).toBe(true);
  expect(hasWork(filterOf({ statement: 'commit' }), of(1, ''))).toBe(false);
  expect(hasWork(filterOf({ connections: new Set([1]) }), of(null, 'COMMIT'))).toBe(false);
  expect(hasWork(EVERYTHING, of(null, ''))).toBe(true);
});

test('the conditions are written as text', () => {
  expect(filterText(EVERYTHING)).toBe('all threads');
  expect(filterText(filterOf({ role: 'purge', name: 'ib', connections: new Set([9, 4]) }))).toBe('threads of role purge, named “ib”, at work for connections 4, 9');
  expect(filterText(filterOf({ tids: new Set([1, 2, 3, 4, 5, 6, 7, 8]) }))).toBe('all threads, threads 1, 2, 3, 4, 5, 6 and 2 more');
});

test('a window is typed as in the terminal, and anything else is refused', () => {
  expect(stretchIn('10s-25s')).toEqual({ from: 10, to: 25 });
  expect(stretchIn('1:10-1:25.5')).toEqual({ from: 70, to: 85.5 });
  expect(stretchIn('1m..2m')).toEqual({ from: 60, to: 120 });
  expect(stretchIn('1:02:03-2:00:00')).toEqual({ from: 3723, to: 7200 });
  for (const wrong of ['', '10', '25-10', 'x-y', '1-2-3', '-5', '1:-2']) expect(stretchIn(wrong), wrong).toBeNull();
  expect(numbersIn('12, 15 x1')).toEqual({ numbers: new Set([12, 15]), wrong: 'x1' });
});

const head: SamplesHead = {
  roles: ['connection', 'purge'],
  lines: false,
  threads: [[7, 'one'], [8, 'ib_purge']],
  statements: ['COMMIT'],
  edges_ns: [0, 1e9, 1.5e9, 2e9],
  levels: [[1, 2]],
  step_s: 1,
  rows: 4,
  block: 0,
  note: '',
};
/** Thread 7 at work for 40 on a COMMIT, at work for 40, and not known for whom; thread 8. */
const samples = samplesOf(
  head,
  [[0, 0, 0, 1], [0, 0, 0, 1], [40, 40, NaN, NaN], [0, NaN, NaN, NaN], [0, 0, 0, 1], [0, 1, 2, 3], [0, 1, 1, 2], [1, 1, 2, 2], [10, 20, 40, 80], [10, 20, 40, 0], [1, 1, 2, 1]].map((column) =>
    Float64Array.from(column),
  ),
);

test('a filter selects the samples of its threads, stretches and work, and reports the known share', () => {
  const of = (part: Partial<Filter>, metric = 0, stretches: [number, number] = [0, 3]) =>
    filteredTime(samples, 3, metric, stretches, marksOf(samples, filterOf(part)), part.connections !== undefined || part.statement !== undefined);
  expect([...of({}).exclusive]).toEqual([0, 30, 40]);
  expect(of({}).samples).toBe(4);
  expect(of({}).half_us).toBeCloseTo(1.96 * Math.sqrt(100 + 400 + 1600));
  expect([...of({}, 0, [1, 2]).exclusive]).toEqual([0, 20, 40]);
  expect([...of({ role: 'purge' }, 1).exclusive]).toEqual([0, 0, 80]);
  expect([...of({ role: 'purge' }).exclusive]).toEqual([0, 0, 0]);
  const connection = of({ connections: new Set([40]) });
  expect([[...connection.exclusive], connection.knownShare]).toEqual([[0, 30, 0], 30 / 70]);
  const other = of({ connections: new Set([41]) });
  expect([[...other.exclusive], other.knownShare]).toEqual([[0, 0, 0], 30 / 70]);
  const statement = of({ statement: 'commit' });
  expect([[...statement.exclusive], statement.knownShare]).toEqual([[0, 10, 0], 10 / 70]);
});

test("the observer's samples are selected only with them, or with their role", () => {
  const traced = { ...samples, head: { ...head, roles: ['connection', 'observer'] } };
  const of = (part: Partial<Filter>, withObserver: boolean) => [...marksOf(traced, filterOf(part), withObserver)];
  expect(of({}, false)).toEqual([3, 3, 3, 0]);
  expect(of({}, true)).toEqual([3, 3, 3, 3]);
  expect(of({ role: 'connection' }, false)).toEqual([3, 3, 3, 0]);
  expect(of({ role: 'connection' }, true)).toEqual([3, 3, 3, 3]);
  expect(of({ role: 'observer' }, false)).toEqual([0, 0, 0, 3]);
  expect(of({ tids: new Set([7]) }, true)).toEqual([3, 3, 3, 0]);
});

test('a window is that of the stretches around it', () => {
  expect(stretchesAround(head, 0, 0.2, 0.9)).toEqual({ places: [0, 1], from: 0, to: 1 });
  expect(stretchesAround(head, 0, 1, 1.5)).toEqual({ places: [1, 2], from: 1, to: 1.5 });
  expect(stretchesAround(head, 0, 0.5, 60)).toEqual({ places: [0, 3], from: 0, to: 2 });
});

test('functions over time are those with the most of the time that a filter selects, and all others together', () => {
  const names = Uint32Array.from([0, 4, 9]);
  const over = (part: Partial<Filter>, most: number) => overTime(samples, names, 0, marksOf(samples, filterOf(part)), 0, most);
  const all = over({}, 1);
  expect([...all.t]).toEqual([0.5, 1.5]);
  expect(all.functions.map(({ name, v }) => [name, ...v.map((cpus) => Math.round(cpus * 1e6))])).toEqual([[9, 0, 40], [-1, 10, 20]]);
  expect(over({ statement: 'commit' }, 8).functions.map(({ name, v }) => [name, ...v.map((cpus) => Math.round(cpus * 1e6))])).toEqual([[4, 10, 0], [-1, 0, 0]]);
});
