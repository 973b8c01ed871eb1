import { expect, test } from 'vitest';
import type { LockKind, LockObject, StatementRow, StatementsHead } from '../../src/data/model.ts';
import { placeOfLevel } from '../../src/lib/levelchoice.ts';
import { kindsOf, lockPlace } from '../../src/lib/locks.ts';
import { columnsOf, rowsBy } from '../../src/lib/statements.ts';

const row = (statement: string, count: number, sums: (number | null)[]): StatementRow => ({
  command: 'QUERY', statement, count, sums, known: sums.map((sum) => (sum === null ? 0 : count)), mean_ns: (sums[0] ?? 0) / count, p95_ns: 1, max_ns: 2,
});
const head: StatementsHead = { metrics: ['response', 'rows_examined'], times: 1, cost: '', levels: [] };

test('the table is that of the level that is shown, else of the one that is explained, else the last', () => {
  const tables = [{ level: 0 }, { level: 2 }, { level: 3 }];
  expect([placeOfLevel(tables, 2, 0), placeOfLevel(tables, null, 0), placeOfLevel(tables, 1, null), placeOfLevel([{ level: null }], null, null), placeOfLevel([], 1, 1)]).toEqual([1, 0, 2, 0, -1]);
});

test('rows stand by any column, those of which it is not known last, and a statement is found by a part of it', () => {
  const rows = [row('COMMIT', 5, [10, null]), row('SELECT c', 9, [7, 3]), row('UPDATE c', 1, [7, 8])];
  const by = (name: string, text = '') => {
    const column = columnsOf(head).find((candidate) => candidate.name === name);
    return column ? rowsBy(rows, column, text).map((one) => one.statement) : [];
  };
  expect(by('response')).toEqual(['COMMIT', 'SELECT c', 'UPDATE c']);
  expect(by('rows examined')).toEqual(['UPDATE c', 'SELECT c', 'COMMIT']);
  expect(by('count')).toEqual(['SELECT c', 'COMMIT', 'UPDATE c']);
  expect(by('mean', 'C ')).toEqual([]);
  expect(by('mean', ' C')).toEqual(['UPDATE c', 'SELECT c']);
});

test('lock waits add up by kind, and a time that is not known adds none', () => {
  const lock = (kind: LockKind, samples: number, waited_s: number | null): LockObject => ({
    lock: kind, object: 't.a', index: 'PRIMARY', mode: 'X', samples, share: 1, waited_s, statement: null, held_by: { statement: null, share: 1 },
  });
  expect(kindsOf([lock('metadata', 2, null), lock('row', 3, 1.5), lock('row', 4, 0.5)])).toEqual([
    { kind: 'row', samples: 7, waited_s: 2 },
    { kind: 'metadata', samples: 2, waited_s: null },
  ]);
  expect([lockPlace({ object: 't.a', index: 'k' }), lockPlace({ object: '', index: '' })]).toEqual(['t.a (k)', 'not known']);
});
