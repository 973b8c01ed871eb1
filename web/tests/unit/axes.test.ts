import { describe, expect, test } from 'vitest';
import { levelScale, linear, logTicks, spread, ticks, zones } from '../../src/lib/scale.ts';
import { unitOf, withUnit } from '../../src/lib/units.ts';
import type { LevelVerdict } from '../../src/data/model.ts';

test('CPU time per second is CPUs, other time is not', () => {
  expect(unitOf('counter', 'ns', 'rate', 'user_ns').suffix).toBe('CPUs');
  expect(unitOf('counter', 'ns', 'rate', 'write_ns').suffix).toBe('s/s');
  expect(withUnit(2_500_000, 'B/s')).toBe('2.38 MiB/s');
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
    const verdict = (users: number, regime: LevelVerdict['regime']): LevelVerdict => ({
      index: users, users, transactions_per_s: 1, transactions_per_s_ci95: null, steadiness: { is: 'steady' }, regime, valid: true, invalid_why: '', cpu: null, server_cpus: null, client_cpus: 0,
    });
    const found = zones([verdict(1, 'ramping_up'), verdict(2, 'ramping_up'), verdict(3, 'unknown'), verdict(4, 'peak')], (users) => users * 10, 0, 50);
    expect(found).toEqual([{ regime: 'ramping_up', left: 0, right: 30 }, { regime: 'peak', left: 30, right: 50 }]);
  });
});
