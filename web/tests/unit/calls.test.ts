import { expect, test } from 'vitest';
import { functionTimes, nodeTimes, relativesOf } from '../../src/lib/calls.ts';
import { callTree } from '../../src/lib/flame.ts';

/** all → main → (read → copy, walk → (walk → copy)); all → copy. Names by place: 0 all, 1 main, 2 read, 3 copy, 4 walk. */
const tree = callTree(Float64Array.of(0, 1, 2, 3, 2, 3, 4, 1), Float64Array.of(0, 1, 2, 3, 4, 4, 3, 3));
const times = nodeTimes(tree, Float64Array.of(0, 10, 0, 30, 15, 25, 5, 20));

test('a function has the time of all its calls, once where it called itself', () => {
  const times_ = functionTimes(tree, times, 5);
  expect([...times_.exclusive]).toEqual([105, 10, 0, 55, 40]);
  expect([...times_.inclusive]).toEqual([105, 85, 30, 55, 45]);
});

test('what is attributed to callers is a function’s inclusive time, and to callees that without its own', () => {
  expect([...relativesOf(tree, times.inclusive, 4).callers]).toEqual([[1, 45]]);
  expect([...relativesOf(tree, times.inclusive, 4).callees]).toEqual([[3, 5]]);
  expect(new Map([...relativesOf(tree, times.inclusive, 3).callers])).toEqual(new Map([[2, 30], [4, 5], [0, 20]]));
  expect(relativesOf(tree, times.inclusive, 3).callees.size).toBe(0);
});

/** A small generator (SplitMix's steps), so that each run tests the same trees. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}

test('of any tree the sums are those of er_print', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed);
    const [depths, names, own] = [[0], [0], [0]];
    for (let node = 1; node < 60; node++) {
      depths.push(1 + Math.floor(next() * Math.min(9, depths.at(-1)! + 1)));
      names.push(1 + Math.floor(next() * 6));
      own.push(Math.floor(next() * 100));
    }
    const calls = callTree(Float64Array.from(depths), Float64Array.from(names));
    const of = nodeTimes(calls, Float64Array.from(own));
    const functions = functionTimes(calls, of, 7);
    const total = own.reduce((sum, value) => sum + value, 0);
    expect([...functions.exclusive.subarray(1)].reduce((sum, value) => sum + value, 0)).toBe(total);
    for (let name = 1; name < 7; name++) {
      const { callers, callees } = relativesOf(calls, of.inclusive, name);
      const sum = (parts: Map<number, number>) => [...parts.values()].reduce((all, one) => all + one, 0);
      expect(sum(callers)).toBeCloseTo(functions.inclusive[name]!, 6);
      expect(sum(callees) + functions.exclusive[name]!).toBeCloseTo(functions.inclusive[name]!, 6);
      expect(functions.inclusive[name]!).toBeLessThanOrEqual(total);
    }
  }
});
