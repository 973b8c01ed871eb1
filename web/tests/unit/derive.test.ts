import { describe, expect, test } from 'vitest';
import type { Column, SeriesHead } from '../../src/data/model.ts';
import { Cumulative, growth, inMode, rates, weight } from '../../src/lib/derive.ts';
import { groupsOf, search } from '../../src/lib/picker.ts';
import { fixture, numbers } from './fixtures.ts';

const fixtures = fixture<[number, number, number][]>('series/fixtures/growth.json');
const column = (t: number[], v: number[]): Column => ({ t: Float64Array.from(t), v: Float64Array.from(v) });

describe('rates', () => {
  test('are growth a second, each at the later reading', () => {
    const found = rates(column([0, 1, 3], [10, 20, 60]));
    expect([Array.from(found.t), Array.from(found.v)]).toEqual([[1, 3], [10, 20]]);
  });

  test('count the value after a reset', () => {
    expect(Array.from(rates(column([0, 1, 2], [100, 150, 30])).v)).toEqual([50, 30]);
  });

  test('grow as the fixtures say, which the crate series reads, too', () => {
    expect(fixtures.length).toBeGreaterThan(7);
    for (const [then, now, grown] of fixtures) expect(growth(then, now)).toBe(grown);
  });

  test('are those of the crate series', () => {
    type Case = { about: string; t_s: number[]; value: (number | null)[]; rates: { t_s: number[]; value: (number | null)[] } };
    for (const one of fixture<Case[]>('series/fixtures/rates.json')) {
      const found = rates({ t: numbers(one.t_s), v: numbers(one.value) });
      expect([found.t, found.v], one.about).toEqual([numbers(one.rates.t_s), numbers(one.rates.value)]);
    }
  });

  test('keep a failed reading as a gap, and then are the mean over it', () => {
    expect(Array.from(rates(column([0, 1, 2], [10, NaN, 50])).v)).toEqual([NaN, 20]);
  });
});

test('per transaction is growth over the transactions in the meantime', () => {
  const transactions = new Cumulative(column([1, 2, 3], [100, 100, 200]), 5);
  const found = inMode(column([1, 2, 3], [0, 300, 500]), 'counter', 'per_transaction', transactions);
  expect(Array.from(found.v)).toEqual([3, 1]);
});

test('transactions are none before, between and after what was read', () => {
  const transactions = new Cumulative(column([1, 2, 50], [100, 100, 10]), 5);
  expect([-3, 0.5, 2, 30, 50, 99].map((t) => transactions.at(t))).toEqual([0, 50, 200, 200, 210, 210]);
});

test('a gauge is the same in every mode', () => {
  const gauge = column([0, 1], [3, 4]);
  expect(inMode(gauge, 'gauge', 'rate', null)).toBe(gauge);
});

test('the busiest counter weighs most, resets or not', () => {
  expect(weight(column([0, 1, 2], [1000, 1010, 5]), 'counter')).toBe(15);
});

describe('the picker', () => {
  const one = (metric: string, source: string, instance = '', flat = false): SeriesHead => ({
    host: 'server', source, metric, instance, kind: 'counter', unit: '1', axis: 0, block: 0, slot: 0, form: 'samples', flat,
  });
  const groups = groupsOf([one('Com_commit', 'status'), one('Handler_commit', 'status'), one('read_bytes', 'disk', 'a'), one('read_bytes', 'disk', 'b')]);

  test('joins the instances of a metric', () => {
    expect(groups.map((group) => [group.metric, group.instances])).toEqual([['Com_commit', 1], ['Handler_commit', 1], ['read_bytes', 2]]);
  });

  test('needs every word, in whatever order and case', () => {
    expect(search(groups, 'COMMIT handler').map((group) => group.metric)).toEqual(['Handler_commit']);
    expect(search(groups, 'disk read').map((group) => group.metric)).toEqual(['read_bytes']);
    expect(search(groups, 'nothing of the kind')).toEqual([]);
  });

  test('puts the beginning of a name before its middle', () => {
    expect(search(groups, 'com').map((group) => group.metric)).toEqual(['Com_commit', 'Handler_commit']);
  });
});
