import { describe, expect, test } from 'vitest';
import type { Growth } from '../../src/data/model.ts';
import { growthRows } from '../../src/lib/growth.ts';

const counter = (metric: string, same_as?: number): Growth => ({
  series: { host: 'server', source: 'status', metric, instance: '' },
  unit: '1', best_users: 8, last_users: 64, best_per_transaction: 1, last_per_transaction: 2, ratio: 2, by_level: [1, 2], meaning: '',
  ...(same_as === undefined ? {} : { same_as }),
});

describe('the rows of the growth table', () => {
  test('hold the counters that say the same, in the order of the first of each', () => {
    const rows = growthRows([counter('a'), counter('b'), counter('a2', 0), counter('c'), counter('b2', 1), counter('a3', 0)]);
    expect(rows.map((row) => row.map(({ series }) => series.metric))).toEqual([['a', 'a2', 'a3'], ['b', 'b2'], ['c']]);
  });
});
