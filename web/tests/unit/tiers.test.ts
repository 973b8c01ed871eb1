import { expect, test } from 'vitest';
import type { TierLine } from '../../src/data/model.ts';
import { tierRows } from '../../src/lib/tiers.ts';

const line = (depth: number, share: number, part: TierLine['part'] = null): TierLine => ({
  depth,
  tier: 'web',
  part,
  text: 'a line',
  ms: share * 10,
  share,
  is_divided: part === null,
  is_unrecorded: false,
});

test('lines of a parent follow each other within its bar', () => {
  const rows = tierRows([line(0, 1), line(1, 0.25, 'cpu'), line(1, 0.75), line(2, 0.5, 'lock'), line(2, -0.01, 'transit_out'), line(2, 0.25, 'cpu')]);
  const bars = rows.map(({ from, to }) => [from, to]);
  expect(bars).toEqual([[0, 1], [0, 0.25], [0.25, 1], [0.25, 0.75], [0.75, 0.75], [0.75, 1]]);
});
