import { expect, test } from 'vitest';
import { valueRange } from '../../src/lib/valueaxis.ts';

const column = (...values: number[]) => ({ t: Float64Array.from(values.keys()), v: Float64Array.from(values) });

test('values that differ by rounding only have an axis from zero, whose steps numbers can make', () => {
  const view = { from: 0, to: 10 };
  expect(valueRange([column(500, 500)], view, false)).toEqual([0, 625]);
  const rounded = 500.00000000000006;
  expect(rounded).not.toBe(500);
  const [from, to] = valueRange([column(500, rounded)], view, false);
  expect(from).toBe(0);
  expect(to).toBeCloseTo(625, 6);
  expect(valueRange([column(0, 0)], view, false)).toEqual([0, 1]);
  // A counter of billions keeps an axis of its own growth.
  expect(valueRange([column(5e9, 5e9 + 1000)], view, false)[0]).toBeGreaterThan(4.9e9);
});
