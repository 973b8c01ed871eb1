import { expect, test } from 'vitest';
import { binLength, functionSeries, outline, sharesIn, stackColumns, within } from '../../src/lib/functions.ts';

const t = Float64Array.of(0.5, 1.5, 2.5);
const column = (...values: number[]) => ({ t, v: Float64Array.from(values) });

test('the functions over time are found among the series, with their files', () => {
  const series = [
    { source: 'cpu', metric: 'user_ns', instance: '' },
    { source: 'functions', metric: 'on_cpus', instance: 'sort(a · b, int) · mariadbd' },
    { source: 'functions', metric: 'on_cpus', instance: 'all others' },
  ];
  expect(functionSeries(series)).toEqual([
    { series: 1, name: 'sort(a · b, int)', module: 'mariadbd' },
    { series: 2, name: 'all others', module: '' },
  ]);
  expect(functionSeries([])).toEqual([]);
});

test('shares are only of the window', () => {
  const columns = [column(1, 0, 0), column(0, 0.5, 1.5)];
  expect(sharesIn(columns, { from: 0, to: 3 })).toEqual([1 / 3, 2 / 3]);
  expect(sharesIn(columns, { from: 1, to: 3 })).toEqual([0, 1]);
  expect(sharesIn(columns, { from: 5, to: 9 })).toEqual([0, 0]);
  expect(within(t, { from: 1, to: 2 })).toEqual([1, 2]);
});

test('each area stands on those before it, in steps as long as a bin', () => {
  const tops = stackColumns([column(1, 2, 0), column(1, 0, 1)]);
  expect(tops.map((top) => [...top])).toEqual([[1, 2, 0], [2, 2, 1]]);
  expect(binLength(t)).toBe(1);
  expect(binLength(Float64Array.of(7))).toBe(1);
  const same = (value: number) => value;
  expect(outline(t, null, tops[0] as Float64Array, [0, 1], same, same)).toBe('M0.0,1.0L1.0,1.0L1.0,0.0L0.0,0.0Z');
  expect(outline(t, tops[0] as Float64Array, tops[1] as Float64Array, [1, 3], same, same)).toBe(
    'M1.0,2.0L2.0,2.0L2.0,1.0L3.0,1.0L3.0,0.0L2.0,0.0L2.0,2.0L1.0,2.0Z',
  );
  expect(outline(t, null, tops[0] as Float64Array, [2, 2], same, same)).toBe('');
});
