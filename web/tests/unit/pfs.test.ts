import { expect, test } from 'vitest';
import type { PfsColumn, PfsLevel, PfsLines, PfsRow, PfsView } from '../../src/data/model.ts';
import { columnsOf, dividedIn, differencesOf, linesOf, type Per, timingRows, wordsOf } from '../../src/lib/pfs.ts';
import { fixture } from './fixtures.ts';

const column = (name: string, quantity: PfsColumn['quantity'], is_level = false): PfsColumn => ({ name, metric: name, quantity, is_level });
const waits: PfsView = { name: 'waits', source: 'pfs_waits', line: 'event', about: '', of_events: true, columns: [column('count', 'count'), column('time', 'time')], main: 1, block: 0 };
const level = (seconds: number, statements: number | null, transactions: number | null): PfsLevel => ({ level: 0, seconds, statements, transactions });
const sumOf = (rows: (PfsRow | null)[]) => [0, 1].map((at) => rows.reduce((sum, row) => sum + (row?.[at] ?? 0), 0));
const linesWith = (names: string[], ...levels: (PfsRow | null)[][]): PfsLines => ({
  names, idle_names: [], observer_names: [], texts: {}, drawn: [],
  levels: levels.map((rows) => ({ rows, idle: [], total: sumOf(rows), left: 0, left_row: [], idle_left: 0, observer: [] })),
});

test('waits are shown per second, statement and transaction, with mean and share, the most first and untimed ones last', () => {
  // The same lines as the test of the terminal's table: 1,000 and 4,000 in 10 s of 20,000 statements and 1,000 transactions.
  const lines = linesWith(['LOCK_plugin', 'log_sys'], [[4000, null], [1000, 20e6]]);
  const columns = columnsOf(waits, level(10, 20_000, 1000), [5000, 20e6], 'second');
  const cells = (row: PfsRow) => columns.map((column) => { const value = column.of(row); return value === null ? '–' : column.words(value); });
  expect(columns.map((column) => column.name)).toEqual(['count/s', '/statement', '/transaction', 'ms/s', 'µs/statement', 'µs/transaction', 'mean µs', 'of time']);
  expect(cells([1000, 20e6])).toEqual(['100', '0.05', '1', '2', '1', '20', '20', '100 %']);
  expect(cells([4000, null])).toEqual(['400', '0.2', '4', '–', '–', '–', '–', '–']);
  expect(linesOf(lines, 0, columns[3], '').map((one) => one.name)).toEqual(['log_sys', 'LOCK_plugin']);
  expect(linesOf(lines, 0, columns[0], '').map((one) => one.name)).toEqual(['LOCK_plugin', 'log_sys']);
  expect(linesOf(lines, 0, columns[0], 'lock_').map((one) => one.name)).toEqual(['LOCK_plugin']);
  expect(columnsOf(waits, level(10, null, null), [5000, 20e6], 'second').map((one) => one.name)).toEqual(['count/s', 'ms/s', 'mean µs', 'of time']);
});

test('other views show the columns that counted, a level undivided, and a digest by its text', () => {
  const view: PfsView = { ...waits, of_events: false, columns: [column('in-use', 'bytes', true), column('allocations', 'count'), column('errors', 'count')] };
  const columns = columnsOf(view, level(10, null, 50), [1 << 27, 100, 0], 'transaction');
  expect(columns.map((column) => [column.name, column.of([1 << 27, 100, 0])])).toEqual([['in-use', 1 << 27], ['allocations', 2]]);
  expect(columns[0]?.words(1 << 27)).toBe('128 MiB');
  const digests = { ...linesWith(['shop:abc'], [[1, 2]]), texts: { 'shop:abc': 'SELECT ?' } };
  expect(linesOf(digests, 0, undefined, 'select')[0]?.label).toBe('SELECT ?');
  expect([wordsOf(column('time', 'time'))(-50_000), wordsOf(column('time', 'time'))(0), wordsOf(column('even', 'share'))(0.61)]).toEqual(['−50 µs', '0 ms', '61 %']);
});

test("a statement of whyso's own is apart, and one that others executed, too, says how many executions were whyso's", () => {
  const lines = { ...linesWith(['both'], [[51.2, 2]]), observer_names: ['own'], texts: { both: 'SELECT ?', own: 'SHOW GLOBAL STATUS' } };
  Object.assign(lines.levels[0] ?? {}, { observer: [[7, 9]], own: { both: 50.4 } });
  expect(linesOf(lines, 0, undefined, '').map((one) => one.label)).toEqual(['[whyso: 50 of 52] SELECT ?']);
  expect(linesOf(lines, 0, undefined, '', 'observer').map((one) => one.label)).toEqual(['SHOW GLOBAL STATUS']);
});

test('what only one side has is a difference too, and nothing is divided by what is not known', () => {
  const lines = linesWith(['a', 'b', 'c'], [[100, null], [50, null], null], [[100, null], null, [500, null]]);
  const levels = [level(10, 200, 20), level(10, 200, 20)];
  const found = differencesOf(waits, lines, levels, [0, 1], 0, 'transaction');
  expect(found.map((one) => [one.name, one.here, one.there, one.difference])).toEqual([['c', 0, 25, -25], ['b', 2.5, 0, 2.5], ['a', 5, 5, 0]]);
  expect(differencesOf(waits, lines, levels, [0, 1], 1, 'second').find((one) => one.name === 'a')?.difference).toBe(null);
  expect(differencesOf(waits, lines, [level(10, null, null), level(10, 1, 1)], [0, 1], 0, 'statement')).toEqual([]);
});

interface Fixtures {
  here: Side;
  there: Side;
  values: { side: 'here' | 'there'; line: string; column: number; per: Per; value: number | null }[];
  differences: { column: number; per: Per; lines: { name: string; here: number | null; there: number | null }[] }[];
}

interface Side {
  seconds: number;
  statements: number | null;
  transactions: number | null;
  lines: Record<string, PfsRow>;
}

test('values and differences are those of the crate explain', () => {
  const fixtures = fixture<Fixtures>('explain/fixtures/pfs.json');
  const sides = [fixtures.here, fixtures.there];
  const names = [...new Set(sides.flatMap((side) => Object.keys(side.lines)))].sort();
  const lines = linesWith(names, ...sides.map((side) => names.map((name) => side.lines[name] ?? null)));
  const levels = sides.map((side) => level(side.seconds, side.statements, side.transactions));
  for (const one of fixtures.values) {
    const place = one.side === 'here' ? 0 : 1;
    const row = sides[place]?.lines[one.line] as PfsRow;
    expect(dividedIn(waits.columns[one.column] as PfsColumn, row[one.column], levels[place] as PfsLevel, one.per), JSON.stringify(one)).toBe(one.value);
  }
  for (const one of fixtures.differences) {
    const found = differencesOf(waits, lines, levels, [0, 1], one.column, one.per);
    expect(found.map(({ name, here, there }) => ({ name, here, there }))).toEqual(one.lines);
  }
});

test('for any two levels: differences turn their sign with the sides, stand by their size, and add up to that of the totals', () => {
  for (let round = 0; round < 200; round++) {
    const names = Array.from({ length: 1 + Math.floor(Math.random() * 30) }, (_, at) => `wait/${at}`);
    const rows = () => names.map((): PfsRow | null => (Math.random() < 0.3 ? null : [Math.random() * 1e6, Math.random() * 1e12]));
    const lines = linesWith(names, rows(), rows());
    const levels = [level(1 + Math.random() * 100, 1 + Math.random() * 1e6, null), level(1 + Math.random() * 100, 1 + Math.random() * 1e6, null)];
    const there = differencesOf(waits, lines, levels, [0, 1], 1, 'statement');
    const back = new Map(differencesOf(waits, lines, levels, [1, 0], 1, 'statement').map((one) => [one.name, one.difference]));
    expect(there.length).toBe(names.filter((_, at) => lines.levels.some((level) => level.rows[at])).length);
    for (const [order, one] of there.entries()) {
      expect((one.difference ?? NaN) + (back.get(one.name) ?? NaN)).toBe(0);
      expect(Math.abs(one.difference ?? 0)).toBeLessThanOrEqual(Math.abs(there[order - 1]?.difference ?? Infinity));
    }
    const [a, b] = lines.levels.map((of, side) => (of.total[1] ?? 0) / (levels[side]?.statements ?? 1)) as [number, number];
    const sum = there.reduce((all, value) => all + (value.difference ?? NaN), 0);
    expect(Math.abs(sum - (a - b))).toBeLessThanOrEqual(1e-9 * (a + b));
  }
});

test('the cost of timing is per second, per statement and a share, and a timer that is not known leaves it open', () => {
  const none = { timer_read: false, events: 0, timed_events: 0, cpu_s: 0, cpu_s_if_all: 0 };
  const { rows, choices } = timingRows({
    seconds: 300,
    statements: 18_602_306,
    server_cpu_s: 2169,
    classes: [
      { ...none, class: 'wait', timer: 'CYCLE', events: 1_098_658_477, timed_events: 1_098_658_477, cpu_s: 26.5254, cpu_s_if_all: 26.5254 },
      { ...none, class: 'stage', timer: 'NANOSECOND', events: 244_153_447, timed_events: 0, cpu_s: 0, cpu_s_if_all: 229.8933 },
      { ...none, class: 'idle', timer: 'TICK', cpu_s: null, cpu_s_if_all: null },
    ],
    cpu_s: 26.5254,
    cpu_s_if_all: null,
    timers: [{ name: 'CYCLE', frequency: null, resolution: null, overhead_cycles: 36, cpu_s: 26.5254, cpu_s_if_all: 32.42 }],
  });
  expect(rows.map((row) => row.name)).toEqual(['wait', 'stage', 'idle', '<Total>']);
  expect(rows[1]).toMatchObject({ timed: 0, perSecond: 0 });
  expect(rows[1]?.allShare).toBeCloseTo(0.106, 4);
  expect(rows[0]?.perStatement).toBeCloseTo(59.06, 2);
  expect(rows[2]).toMatchObject({ timed: null, perSecond: null });
  expect(rows[3]?.share).toBeCloseTo(0.01223, 5);
  expect(rows[3]?.allPerSecond).toBeNull();
  expect(choices[0]).toMatchObject({ name: 'CYCLE', overhead: 36 });
});
