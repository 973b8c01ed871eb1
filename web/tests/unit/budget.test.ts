import { expect, test } from 'vitest';
import type { Budget } from '../../src/data/model.ts';
import { evidenceOfPart, partsShown, segmentsOf } from '../../src/lib/budget.ts';

const series = { host: 'server', source: 'trace', metric: 'request_lock_ns', instance: '' };

function budget(unaccounted_ms: number): Budget {
  return {
    level: 2,
    users: 8,
    repeat: false,
    response_ms: 10,
    parts: [
      { part: 'client_queue', ms: 0, series: [] },
      { part: 'cpu', ms: 2, series: [] },
      { part: 'lock', ms: 8 - unaccounted_ms, series: [series] },
    ],
    unaccounted_ms,
    classes: [],
    cpu_split: null,
    client_wakeup_ms: 0,
    remote: false,
    recorded: false,
    notes: [],
  };
}

test('parts stand on each other, and what remains on top of them', () => {
  expect(segmentsOf(budget(1))).toEqual([
    { part: 'cpu', ms: 2, from: 0, to: 2 },
    { part: 'lock', ms: 7, from: 2, to: 9 },
    { part: 'unaccounted', ms: 1, from: 9, to: 10 },
  ]);
});

test('a remainder below nothing hangs from the axis', () => {
  expect(segmentsOf(budget(-1)).at(-1)).toEqual({ part: 'unaccounted', ms: -1, from: 0, to: -1 });
});

test('a part that no bar shows is not in the legend', () => {
  expect(partsShown([budget(1)])).toEqual(['cpu', 'lock']);
});

test('a part is based on its series, and one that the generator measured on its level', () => {
  const window = { begin_ns: 5, end_ns: 9 };
  expect(evidenceOfPart(budget(1), 'lock', window)).toEqual({ is: 'series', series, begin_ns: 5, end_ns: 9 });
  expect(evidenceOfPart(budget(1), 'unaccounted', window)).toEqual({ is: 'levels', quantity: 'latency_mean_ms', levels: [2] });
});
