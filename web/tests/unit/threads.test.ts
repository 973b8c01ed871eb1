import { expect, test } from 'vitest';
import { between, covering, isIdle, overTime, sharesOf, sorted, stateStyle, threadsOf } from '../../src/lib/threads.ts';
import { fixture, numbers } from './fixtures.ts';

/** Two threads at three snapshots, one second apart; the second begins at the last. */
const head = {
  states: ['cpu', 'lock'],
  t_ns: [10e9, 11e9, 12e9],
  unit_ns: 10_000,
  list: [
    { tid: 7, name: 'a', role: 'purge' },
    { tid: 8, name: 'b', role: 'connection' },
  ],
  statements: ['COMMIT'],
  block: 0,
  note: '',
};
const columns = [
  Float64Array.of(0, 25_000, 75_000, 75_000, 75_000, 125_000),
  Float64Array.of(0, 75_000, 125_000, 125_000, 125_000, 125_000),
  Float64Array.of(0, 0, 0, 0, 0, 9),
  Float64Array.of(NaN, NaN, NaN, NaN, NaN, 40),
  Float64Array.of(NaN, NaN, NaN, NaN, NaN, 0),
];
const threads = threadsOf(head, 10e9, columns);
const rounded = (numbers: number[]) => numbers.map((value) => Math.round(value * 1e6) / 1e6);

test('threads that sleep by design are idle and not waiting for locks', () => {
  expect(['net_receive', 'idle', 'lock', 'sleep', undefined].map(isIdle)).toEqual([true, true, false, false, false]);
  expect(stateStyle('idle').name).toBe('idle');
  expect(stateStyle('idle').color).not.toBe(stateStyle('lock').color);
});

test('a window is covered by the snapshots nearest to its ends', () => {
  const t = [0, 10, 20, 30];
  expect(covering(t, 9, 22)).toEqual([1, 2]);
  expect(covering(t, -50, 500)).toEqual([0, 3]);
  expect(covering(t, 12, 14)).toEqual([1, 2]);
  expect(covering(t, 17, 18)).toEqual([1, 2]);
  expect(covering(t, -9, -8)).toEqual([0, 1]);
  expect(covering(t, 90, 91)).toEqual([2, 3]);
  expect(covering([5], 0, 9)).toBeNull();
});

interface Fixtures {
  covering: { about: string; t: number[]; from: number; to: number; snapshots: [number, number] | null }[];
  table: {
    t_ns: number[];
    states: string[];
    threads: { tid: number; name: string; role: string }[];
    running_ns: number[][];
    running_requests: number[];
    connection: (number | null)[];
    statement: (number | null)[];
    statements: string[];
  };
  between: { from: number; to: number; threads: { tid: number; connection: number | null; statement: string | null; requests: number; states_ns: number[] }[] }[];
  idle: Record<string, boolean>;
}

test('the time of threads is that of the crate series', () => {
  const fixtures = fixture<Fixtures>('series/fixtures/threads.json');
  for (const one of fixtures.covering) expect(covering(one.t, one.from, one.to), one.about).toEqual(one.snapshots);
  const { table } = fixtures;
  const columns = [...table.running_ns, table.running_requests, table.connection, table.statement].map(numbers);
  const origin = table.t_ns[0] ?? 0;
  const threads = threadsOf({ states: table.states, t_ns: table.t_ns, unit_ns: 1, list: table.threads, statements: table.statements, block: 0, note: '' }, origin, columns);
  for (const one of fixtures.between) {
    const rows = between(threads, one.from, one.to);
    expect(rows.map((row) => row.tid)).toEqual(one.threads.map((thread) => thread.tid));
    for (const [place, row] of rows.entries()) {
      const { connection, statement, requests, states_ns } = one.threads[place] as (typeof one.threads)[number];
      expect(row).toMatchObject({ connection, statement: statement ?? '', requests });
      expect(row.shares.map((share) => Math.round(share * row.seconds * 1e9))).toEqual(states_ns);
    }
  }
  for (const [state, expected] of Object.entries(fixtures.idle)) expect(isIdle(state), state).toBe(expected);
});

test('shares are of the time that a thread had in the window', () => {
  const [only, ...others] = between(threads, 0, 1);
  expect(others).toEqual([]);
  expect(only).toMatchObject({ tid: 7, connection: null, statement: '' });
  expect(rounded(only?.shares ?? [])).toEqual([0.25, 0.75]);
  const whole = between(threads, 0, 2);
  expect(rounded(whole.map((row) => row.seconds))).toEqual([2, 0.5]);
  expect(whole[1]).toMatchObject({ shares: [1, 0], requests: 9, connection: 40, statement: 'COMMIT' });
  // 0.75 s of the first thread's and 0.5 s of the second's 2.5 s.
  expect(rounded(sharesOf(whole, 2))).toEqual([0.5, 0.5]);
});

test('over time, states are counted in threads', () => {
  expect(overTime(threads, [0, 1]).map(rounded)).toEqual([[0.25, 0.75], [1, 0.5]]);
  expect(overTime(threads, [1]).map(rounded)).toEqual([[0, 0], [0.5, 0]]);
});

test('rows without a value come last either way, and filters meet', () => {
  const rows = between(threads, 0, 2);
  for (const falls of [true, false]) expect(sorted(rows, 'connection', falls).map((row) => row.tid)).toEqual([8, 7]);
  expect(sorted(rows, 0, true).map((row) => row.tid)).toEqual([8, 7]);
  expect(sorted(rows, 0, false).map((row) => row.tid)).toEqual([7, 8]);
});
