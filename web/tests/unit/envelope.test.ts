import { describe, expect, test } from 'vitest';
import type { Column } from '../../src/data/model.ts';
import { type Bucket, envelope, extent, gapLength, lowerBound, nearest, quantile } from '../../src/lib/envelope.ts';
import { fixture, numbers } from './fixtures.ts';

const column = (v: number[], step = 1): Column => ({
  t: Float64Array.from(v, (_, index) => index * step),
  v: Float64Array.from(v),
});

describe('an envelope', () => {
  test('keeps a spike of one sample among ten thousand', () => {
    const values = Array.from({ length: 10_000 }, () => 5);
    values[7_777] = 900;
    const buckets = envelope(column(values), 0, 10_000, 100);
    expect(buckets[77]?.max).toBe(900);
    expect(buckets[77]?.median).toBe(5);
    expect(Math.max(...buckets.filter((_, index) => index !== 77).map((bucket) => bucket.max))).toBe(5);
  });

  test('counts every sample once, whatever the number of buckets', () => {
    for (const count of [1, 3, 7, 64, 999]) {
      const buckets = envelope(column(Array.from({ length: 1000 }, (_, index) => index)), 0, 1000, count);
      expect(buckets.reduce((sum, bucket) => sum + bucket.count, 0)).toBe(1000);
    }
  });

  test('has quartiles between its extremes, and those of the values', () => {
    const [bucket] = envelope(column([9, 1, 5, 3, 7]), 0, 5, 1);
    expect(bucket).toEqual({ count: 5, min: 1, q1: 3, median: 5, q3: 7, max: 9 });
  });

  test('is that of the crate series', () => {
    type Case = { about: string; t: number[]; value: (number | null)[]; from: number; to: number; buckets: (Bucket | null)[] };
    for (const one of fixture<Case[]>('series/fixtures/envelope.json')) {
      const found = envelope({ t: numbers(one.t), v: numbers(one.value) }, one.from, one.to, one.buckets.length);
      expect(found.map((bucket) => (bucket.count > 0 ? bucket : null)), one.about).toEqual(one.buckets);
    }
  });

  test('leaves a gap where there is nothing or nothing was read', () => {
    const buckets = envelope(column([1, NaN, NaN, 4]), 0, 8, 8);
    expect(buckets.map((bucket) => bucket.count)).toEqual([1, 0, 0, 1, 0, 0, 0, 0]);
  });

  test('of an envelope keeps the extremes of its buckets', () => {
    const thinned: Column = {
      ...column([5, 6]),
      band: { min: Float64Array.of(1, 2), q1: Float64Array.of(4, 5), q3: Float64Array.of(6, 7), max: Float64Array.of(99, 8) },
    };
    const [bucket] = envelope(thinned, 0, 2, 1);
    expect([bucket?.min, bucket?.max]).toEqual([1, 99]);
  });
});

test('quantiles interpolate between neighbours', () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
  expect(quantile([8], 0.25)).toBe(8);
  expect(quantile([], 0.5)).toBeNaN();
});

test('the extent of a view knows gaps and neighbours just outside', () => {
  expect(extent(column([1, 50, NaN, 3]), 1.5, 3)).toEqual([3, 50]);
  expect(extent(column([NaN, NaN]), 0, 1)).toBeNull();
});

test('samples are found by time', () => {
  const times = Float64Array.of(1, 2, 4);
  expect([lowerBound(times, 0), lowerBound(times, 2), lowerBound(times, 2.1), lowerBound(times, 9)]).toEqual([0, 1, 2, 3]);
  expect([nearest(times, 2.9), nearest(times, 3.1), nearest(times, 99)]).toEqual([1, 2, 2]);
  expect(nearest(Float64Array.of(), 1)).toBe(-1);
});

test('a gap is several steps long', () => {
  expect(gapLength(Float64Array.of(0, 1, 2, 3, 10, 11))).toBe(3.5);
});
