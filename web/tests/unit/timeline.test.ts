import { expect, test } from 'vitest';
import type { SinglesHead, TimelineHead } from '../../src/data/model.ts';
import { between, bucketAt, linesOf, moveSpan, rowAt, rowsOf, singlesIn, singlesOf, stackStates, timeBetween, together, zoomSpan } from '../../src/lib/timeline.ts';

const S = 1e9;
/** Two connections and a purge thread over four buckets of ten seconds; nobody is ever in the third state. */
const head: TimelineHead = {
  states: ['cpu', 'lock', 'sleep', 'net_receive'],
  edges_ns: [100, 110, 120, 130, 140].map((s) => s * S),
  list: [
    { tid: 7, name: 'one', role: 'connection', first: 0, buckets: 4 },
    { tid: 8, name: 'two', role: 'connection', first: 2, buckets: 2 },
    { tid: 9, name: 'ib_purge', role: 'purge', first: 0, buckets: 1 },
  ],
  block: 0,
  singles: null,
  note: '',
};
const columns = [
  [0b1, 0b11, 0b1000, 0b10, 0b1, 0b10, 0b1001],
  [10_000, 4_000, 5_000, 1_000],
  [6_000, 10_000, 8_000],
  [],
  [10_000, 9_000],
].map((column) => Float64Array.from(column));
const lines = linesOf(head, 100 * S, columns);

test('time by state is read back from the cells, with states that nobody was in left out', () => {
  expect(lines.states).toEqual([0, 1, 3]);
  const of = (place: number, from: number, to: number) => [...timeBetween(lines, lines.list[place]!.running, from, to)];
  expect(of(0, 0, 10)).toEqual([10_000, 0, 0]);
  expect(of(0, 10, 20)).toEqual([4_000, 6_000, 0]);
  expect(of(0, 0, 40)).toEqual([14_000, 16_000, 10_000]);
  expect(of(1, 0, 40)).toEqual([5_000, 8_000, 0]);
  expect(of(2, 0, 40)).toEqual([1_000, 0, 9_000]);
});

test('time by state lies evenly within a bucket, and outside of its life a thread has none', () => {
  const one = lines.list[1]!.running;
  expect([...timeBetween(lines, one, 0, 20)]).toEqual([0, 0, 0]);
  expect([...timeBetween(lines, one, 15, 25)]).toEqual([2_500, 0, 0]);
  expect(timeBetween(lines, one, 39, 99)[1]).toBeCloseTo(800, 6);
});

test('time by state of threads together is the sum of theirs', () => {
  const sum = together(lines, [0, 1, 2]);
  expect([...timeBetween(lines, sum, 0, 40)]).toEqual([20_000, 24_000, 19_000]);
  expect([...timeBetween(lines, sum, 25, 35)]).toEqual([2_500, 9_000, 5_000]);
});

test('time by state finds a bucket whatever its length', () => {
  const edges = Float64Array.of(0, 1, 10, 11);
  expect([-5, 0, 0.5, 1, 5.5, 10.25, 11, 99].map((t) => bucketAt(edges, t))).toEqual([0, 0, 0.5, 1, 1.5, 2.25, 3, 3]);
});

test('states that are stacked cover every pixel once, and each as much as its time is worth, however thin it is', () => {
  for (const [high, times] of [[12, [0.7, 0.295, 0.005]], [5, [0.001, 0.998, 0.001]], [40, [0, 0, 3]], [1, [1, 1, 1]]] as [number, number[]][]) {
    const total = times.reduce((sum, value) => sum + value, 0);
    const pixels = new Float64Array(high);
    const states = new Float64Array(3);
    const isDrawn = stackStates(Float64Array.from(times), [2, 0, 1], high, (state, pixel, part) => {
      expect(part).toBeGreaterThan(0);
      pixels[pixel]! += part;
      states[state]! += part;
    });
    expect(isDrawn).toBe(true);
    for (const pixel of pixels) expect(pixel).toBeCloseTo(1, 9);
    states.forEach((area, state) => expect(area).toBeCloseTo((high * times[state]!) / total, 9));
  }
});

test('states without any time are not drawn', () => {
  expect(stackStates(new Float64Array(2), [0, 1], 5, () => expect.unreachable())).toBe(false);
});

const singlesHead: SinglesHead = { classes: ['', 'row_lock'], functions: ['f'], sites: [[1, 0]], count: 4, block: 0, note: '' };
const singles = singlesOf(singlesHead, [[3, 0, 1], [1e6, 4e6, 9e6, 2e6], [1, 0, 1, 1], [5e5, 0, 6e6, 1], [5e5, 1e4, 6e6, 1], [0, 0, 0, 0], [8, NaN, NaN, 7], [0, NaN, NaN, 0]].map((one) => Float64Array.from(one)));

test('single waits are found where they touch a stretch, those that end after it too', () => {
  expect(singlesIn(singles, 0, 3.5, 4.5)).toEqual([1, 3]);
  expect(singlesIn(singles, 0, 9.5, 20)).toEqual([3, 3]);
  expect(singlesIn(singles, 1, 0, 20)).toEqual([3, 3]);
  expect(singlesIn(singles, 2, 0, 20)).toEqual([3, 4]);
  expect([...singles.longest]).toEqual([6, 0, 0.000001]);
});

const heights = { role: 30, open: 20, alone: 15, thread: 10 };

test('rows are a role each, and the threads of those that are open; the only thread of a role is one row', () => {
  const rows = rowsOf(lines, [0, 1, 2], new Set(['connection']), heights);
  expect(rows.map((row) => [row.role, row.isRole, row.isAlone, row.places, row.top, row.height])).toEqual([
    ['connection', true, false, [0, 1], 0, 20],
    ['connection', false, false, [0], 20, 10],
    ['connection', false, false, [1], 30, 10],
    ['purge', false, true, [2], 40, 15],
  ]);
  expect([-1, 0, 19, 20, 39, 54, 55].map((y) => rowAt(rows, y))).toEqual([-1, 0, 0, 1, 2, 3, -1]);
});

const whole = { from: 0, to: 100 };

test('a span zooms around a time, and not past its ends', () => {
  expect(zoomSpan({ from: 20, to: 60 }, 30, 0.5, whole, 0.001)).toEqual({ from: 25, to: 45 });
  expect(zoomSpan({ from: 20, to: 60 }, 30, 10, whole, 0.001)).toEqual(whole);
  const least = zoomSpan({ from: 20, to: 20.002 }, 20.001, 0.01, whole, 0.001);
  expect(least.to - least.from).toBeCloseTo(0.001, 9);
});

test('a span moves as far as there is anything', () => {
  expect(moveSpan({ from: 10, to: 30 }, 15, whole)).toEqual({ from: 25, to: 45 });
  expect(moveSpan({ from: 10, to: 30 }, -15, whole)).toEqual({ from: 0, to: 20 });
  expect(moveSpan({ from: 10, to: 30 }, 500, whole)).toEqual({ from: 80, to: 100 });
});

test('time between two places adds to what is there', () => {
  const into = Float64Array.of(1, 1, 1);
  between(lines.list[0]!.running, 3, 0, 1, into);
  expect([...into]).toEqual([10_001, 1, 1]);
});
