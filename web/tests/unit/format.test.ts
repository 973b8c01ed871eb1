import { describe, expect, test } from 'vitest';
import { clock, ms, num, percent, short, unitOf, withUnit } from '../../src/lib/format.ts';
import { levelScale, linear, logTicks, spread, ticks, zones } from '../../src/lib/scale.ts';
import type { Verdict } from '../../src/data/model.ts';

test.each([
  [0, '0'], [1234567.8, '1,234,568'], [99.96, '100'], [12.34, '12.3'], [9.996, '10.0'], [1.005, '1.00'], [0.01234, '0.012'],
  [0.000012, '1.2·10⁻⁵'], [-1234, '−1,234'], [NaN, '–'], [Infinity, '–'],
])('%f is written %s', (value, expected) => expect(num(value)).toBe(expected));

test.each([[0, '0'], [1500, '1.5k'], [20e6, '20M'], [0.25, '0.25'], [-3000, '−3k']])('%f is short for an axis: %s', (value, expected) =>
  expect(short(value)).toBe(expected),
);

test('times are minutes and seconds of the run', () => {
  expect([clock(0), clock(75), clock(3675), clock(1.25, 0.1), clock(-2)]).toEqual(['0:00', '1:15', '1:01:15', '0:01.3', '−0:02']);
});

test('shares and latencies have the unit that suits them', () => {
  expect([percent(0.004), percent(0.97), percent(null)]).toEqual(['0.4 %', '97 %', '–']);
  expect([ms(0.05), ms(12.3), ms(12_300)]).toEqual(['50.0 µs', '12.3 ms', '12.3 s']);
});

test('CPU time a second is CPUs, other time is not', () => {
  expect(unitOf('counter', 'ns', 'rate', 'user_ns').suffix).toBe('CPUs');
  expect(unitOf('counter', 'ns', 'rate', 'write_ns').suffix).toBe('s/s');
  expect(withUnit(2_500_000, 'B/s')).toBe('2.50 MB/s');
  expect(withUnit(NaN, '/s')).toBe('gap');
});

describe('axes', () => {
  test('cover the greatest value in round steps', () => {
    expect(ticks(1730, 5)).toEqual([0, 500, 1000, 1500, 2000]);
    expect(ticks(0, 5)).toEqual([0, 1]);
    expect(logTicks(3, 120)).toEqual([5, 10, 20, 50, 100]);
  });

  test('give every doubling of users the same room', () => {
    const x = levelScale([1, 2, 4, 64], 0, 100);
    expect(x(4) - x(2)).toBeCloseTo(x(64) - x(32));
    expect(linear(0, 10, 100, 0)(5)).toBe(50);
  });

  test('keep labels apart and in order', () => {
    expect(spread([10, 12, 50], 13)).toEqual([10, 23, 50]);
  });

  test('shade neighbouring levels of one regime as one zone, leaving out what was not judged', () => {
    const verdict = (users: number, regime: Verdict['regime']): Verdict => ({
      index: users, users, transactions_per_s: 1, transactions_per_s_ci95: null, steadiness: { is: 'steady' }, regime, valid: true, invalid_why: '',
    });
    const found = zones([verdict(1, 'ramping_up'), verdict(2, 'ramping_up'), verdict(3, 'unknown'), verdict(4, 'peak')], (users) => users * 10, 0, 50);
    expect(found).toEqual([{ regime: 'ramping_up', left: 0, right: 30 }, { regime: 'peak', left: 30, right: 50 }]);
  });
});
