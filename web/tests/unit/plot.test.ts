import { describe, expect, it } from 'vitest';
import type { Column, Head, SeriesHead } from '../../src/data/model.ts';
import { BlockSource, type LinesRequest } from '../../src/data/source.ts';
import { moved, summed } from '../../src/lib/derive.ts';
import { instancesOf, labelOf, modesOf, ofMetrics, ofRuns, pixelsOf } from '../../src/lib/plot.ts';

const column = (v: number[], t = v.map((_, at) => at)): Column => ({ t: Float64Array.from(t), v: Float64Array.from(v) });
const series = (metric: string, instance = '', kind: 'counter' | 'gauge' = 'gauge'): SeriesHead => ({
  host: 'server', source: 'status', metric, instance, kind, unit: '1', axis: 0, block: 0, slot: 0, form: 'samples', flat: false,
});

/** A report's source whose columns are in memory. */
class FixedSource extends BlockSource {
  readonly head: Head;
  readonly #columns: Column[];

  constructor(list: SeriesHead[], columns: Column[]) {
    super();
    this.head = { series: list } as Head;
    this.#columns = columns;
  }

  override column(at: number): Promise<Column> {
    return Promise.resolve(this.#columns[at] as Column);
  }

  protected inflateBlock(): Promise<Uint8Array> {
    throw new Error('no blocks');
  }
}

const signal = new AbortController().signal;
const stretch = { from: 0, to: 10, px: 100 };
const how = { mode: 'rate', top: 5, sum: false } as const;

describe('lines of metrics', () => {
  const source = new FixedSource(
    [series('a', 'x', 'counter'), series('a', 'y', 'counter'), series('b')],
    [column([0, 10, 20]), column([0, 1, 3]), column([5, 6, 7])],
  );

  it('are named by what distinguishes them', async () => {
    const { strokes } = await ofMetrics(source, [[0, 1], [2], []], how, stretch, signal);
    expect(strokes.map((stroke) => [stroke.label, stroke.suffix, stroke.place])).toEqual([['a x', '/s', 0], ['a y', '/s', 1], ['b', '', 2]]);
    expect(labelOf('lat_100ms', 'transaction', false, false)).toBe('lat');
    expect(labelOf('a', 'x', false, true)).toBe('x');
  });

  it('are read together if none is ranked or added up', async () => {
    const requests: [number[], number][] = [];
    const counting = new FixedSource(source.head.series, [column([0, 1]), column([0, 2]), column([3, 3])]);
    counting.lines = (numbers, request) => {
      requests.push([numbers, request.top]);
      return BlockSource.prototype.lines.call(counting, numbers, request);
    };
    const { strokes } = await ofMetrics(counting, [[2], [0, 1]], how, stretch, signal);
    expect(strokes.map((stroke) => stroke.label)).toEqual(['b', 'a x', 'a y']);
    await ofMetrics(counting, [[2], [0, 1]], { ...how, top: 1 }, stretch, signal);
    expect(requests).toEqual([[[2, 0, 1], 0], [[2], 0], [[0, 1], 1]]);
  });

  it('are the busiest, and say how many are not', async () => {
    const { strokes, left } = await ofMetrics(source, [[1, 0]], { ...how, top: 1 }, stretch, signal);
    expect(strokes.map((stroke) => stroke.label)).toEqual(['x']);
    expect(left).toEqual(['1 less busy are not drawn']);
  });

  it('are one as a sum, of growth where counters are', async () => {
    const { strokes } = await ofMetrics(source, [[0, 1]], { mode: 'raw', top: 1, sum: true }, stretch, signal);
    expect(strokes.map((stroke) => [stroke.label, stroke.suffix, [...stroke.column.v]])).toEqual([['sum of 2', '/s', [11, 12]]]);
    expect(modesOf(source.head.series, true)).not.toContain('raw');
    expect(modesOf([series('b')], false)).toEqual([]);
  });
});

it('a metric of several runs is on one axis, and a run without it is named', async () => {
  const one = new FixedSource([series('m')], [column([1, 2], [100, 101])]);
  const requests: LinesRequest[] = [];
  one.lines = (numbers, request) => {
    requests.push(request);
    return BlockSource.prototype.lines.call(one, numbers, request);
  };
  const pick = { host: 'server', source: 'status', metric: 'm', instance: null };
  const sides = [{ name: 'other', source: new FixedSource([], []), begin: 0, pick }, { name: 'one', source: one, begin: 100, pick }];
  const { strokes, left } = await ofRuns(sides, 'rate', stretch, signal);
  expect(requests[0]).toMatchObject({ from: 100, to: 110, sum: false });
  expect([...(strokes[0]?.column.t ?? [])]).toEqual([0, 1]);
  // Its colour stays that of the second run.
  expect(strokes[0]?.place).toBe(1);
  expect(left).toEqual(['other: not recorded']);
});

it('a part of a run has nothing of what is next to it, and is not read where it is out of sight', async () => {
  const run = new FixedSource([series('m')], [column([1, 2, 3, 4, 5], [98, 99, 100, 101, 102])]);
  const pick = { host: 'server', source: 'status', metric: 'm', instance: null };
  const of = (begin: number) => ({ name: 'day', source: run, begin, pick, only: { from: 99, to: 101 } });
  const { strokes } = await ofRuns([of(99), of(50)], 'rate', stretch, signal);
  expect(strokes.map((stroke) => [stroke.place, [...stroke.column.t], [...stroke.column.v]])).toEqual([[0, [0, 1], [2, 3]]]);
});

it('a sum is a gap where one is missing', () => {
  const { t, v } = summed([column([1, 2, 3]), column([10, 30], [0, 2]), column([NaN, 0, 0])]);
  expect([...t]).toEqual([0, 1, 2]);
  expect([...v]).toEqual([NaN, NaN, 33]);
});

it('a column is moved to another unit and another zero', () => {
  const band = { min: Float64Array.of(1), q1: Float64Array.of(2), q3: Float64Array.of(3), max: Float64Array.of(4) };
  const column = moved({ t: Float64Array.of(7), v: Float64Array.of(2), band }, 10, 5);
  expect([column.t[0], column.v[0], column.band?.max[0]]).toEqual([2, 20, 40]);
});

it('an instance is meant by its name, or all are', () => {
  const list = [series('a', 'x'), series('a', 'y'), series('b', 'x')];
  expect(instancesOf(list, { host: 'server', source: 'status', metric: 'a', instance: null })).toEqual([0, 1]);
  expect(instancesOf(list, { host: 'server', source: 'status', metric: 'a', instance: 'y' })).toEqual([1]);
  expect([pixelsOf(0), pixelsOf(1074), pixelsOf(1e6)]).toEqual([64, 1000, 4000]);
});
