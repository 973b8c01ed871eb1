import { expect, test } from 'vitest';
import { kindsOf } from '../../src/lib/flamewords.ts';
import { callTree, difference, frameAt, frameOf, inclusiveOf, kindOf, label, layout, matchNames, pathTo, shade, shareOf, step, sumColumns, significantDifference, WIDTH_MIN } from '../../src/lib/flame.ts';

/** all → main → (read → copy, walk → walk); all → other. Names by place: 0 all, 1 main, 2 read, 3 copy, 4 walk, 5 other. */
const tree = callTree(Float64Array.of(0, 1, 2, 3, 2, 3, 1), Float64Array.of(0, 1, 2, 3, 4, 4, 5));
const exclusive = Float64Array.of(0, 10, 0, 30, 15, 25, 20);
const inclusive = inclusiveOf(tree, exclusive);

test('a preorder with depths gives callers, and where the callees of a node end', () => {
  expect([...tree.parent]).toEqual([-1, 0, 1, 2, 1, 4, 0]);
  expect([...tree.end]).toEqual([7, 6, 4, 4, 6, 6, 7]);
  expect(pathTo(tree, 5)).toEqual([0, 1, 4, 5]);
});

test('inclusive time is that of a node and of all that it called', () => {
  expect([...inclusive]).toEqual([100, 80, 30, 30, 40, 25, 20]);
  expect([...sumColumns([exclusive, exclusive], 7)]).toEqual([...exclusive].map((one) => 2 * one));
});

test('widths are parts of the whole, and a function stands above the one that called it', () => {
  const frames = layout(tree, inclusive, 0, 1000);
  expect([...frames.node.subarray(0, frames.count)]).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect([...frames.width.subarray(0, frames.count)]).toEqual([1000, 800, 300, 300, 400, 250, 200]);
  expect([...frames.left.subarray(0, frames.count)]).toEqual([0, 0, 0, 0, 300, 300, 800]);
  expect(frames.rows).toBe(4);
});

test('a node that is zoomed to has the whole width, and so have those above it', () => {
  const frames = layout(tree, inclusive, 4, 1000);
  expect([...frames.node.subarray(0, frames.count)]).toEqual([0, 1, 4, 5]);
  expect([...frames.width.subarray(0, frames.count)]).toEqual([1000, 1000, 1000, 625]);
});

test('what is narrower than half a pixel is left out with all above it, and still takes its place', () => {
  const frames = layout(tree, inclusive, 0, (WIDTH_MIN * 100) / 28);
  expect([...frames.node.subarray(0, frames.count)]).toEqual([0, 1, 2, 3, 4]);
  const only = layout(tree, inclusive, 0, (WIDTH_MIN * 100) / 35);
  expect([...only.node.subarray(0, only.count)]).toEqual([0, 1, 4]);
  expect(only.left[2]).toBeCloseTo(only.width[1]! * (30 / 80), 5);
});

test('a tree without time has no frames', () => {
  expect(layout(tree, new Float64Array(7), 0, 1000).count).toBe(0);
});

test('children lie within their callers, side by side, whatever the tree', () => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const depths = [0];
  while (depths.length < 3000) depths.push(1 + Math.floor(random() * (depths.at(-1)! + 1)));
  const any = callTree(Float64Array.from(depths), Float64Array.from(depths, () => 0));
  const times = inclusiveOf(any, Float64Array.from(depths, () => Math.floor(random() * 50)));
  const frames = layout(any, times, 0, 1500);
  const ends = new Map<number, number>();
  for (let frame = 0; frame < frames.count; frame++) {
    const node = frames.node[frame]!;
    const caller = any.parent[node]!;
    const [left, width] = [frames.left[frame]!, frames.width[frame]!];
    expect(width).toBeCloseTo((1500 * times[node]!) / times[0]!, 1);
    if (caller < 0) continue;
    const of = frameOf(frames, caller);
    expect(left).toBeGreaterThanOrEqual((ends.get(caller) ?? frames.left[of]!) - 0.01);
    expect(left + width).toBeLessThanOrEqual(frames.left[of]! + frames.width[of]! + 0.01);
    ends.set(caller, left + width);
  }
});

test('a place leads to its frame, and keys to the caller, the widest callee and the neighbours', () => {
  const frames = layout(tree, inclusive, 0, 1000);
  expect(frames.node[frameAt(frames, tree, 2, 310)]).toBe(4);
  expect(frameAt(frames, tree, 2, 990)).toBe(-1);
  expect(step(frames, tree, 1, 'callee')).toBe(4);
  expect(step(frames, tree, 4, 'caller')).toBe(1);
  expect(step(frames, tree, 4, 'left')).toBe(2);
  expect(step(frames, tree, 2, 'right')).toBe(4);
  expect(step(frames, tree, 1, 'right')).toBe(6);
  expect([step(frames, tree, 3, 'callee'), step(frames, tree, 2, 'left'), step(frames, tree, 0, 'caller')]).toEqual([3, 2, 0]);
});

test('functions that match are counted once, also where they call themselves', () => {
  const names = ['all', 'main', 'read', 'copy', 'Walk', 'other'];
  expect(shareOf(tree, inclusive, matchNames(names, 'walk'))).toBeCloseTo(0.4);
  expect(shareOf(tree, inclusive, matchNames(names, 'O'))).toBeCloseTo(0.5);
  expect(shareOf(tree, inclusive, matchNames(names, ''))).toBe(0);
});

test('a difference is of time by what it is divided by', () => {
  const there = Float64Array.of(0, 10, 0, 10, 0, 0, 20);
  const side = (times: Float64Array, by: number, half = 0) => ({ times, total: 100, by, half });
  expect([...difference(side(exclusive, 10), side(there, 10)).value]).toEqual([0, 0, 0, 2, 1.5, 2.5, 0]);
  expect([...difference(side(exclusive, 10), side(there, 0)).value]).toEqual([0, 1, 0, 3, 1.5, 2.5, 2]);
  // 25 of 100 here with an interval of 60 in all: half of that here, and nothing there.
  const wide = difference(side(exclusive, 10, 60), side(there, 10));
  expect(wide.half[5]).toBeCloseTo(3);
  expect([significantDifference(wide, 5), significantDifference(difference(side(exclusive, 10, 40), side(there, 10)), 5)]).toEqual([0, 2.5]);
  expect([shade(4, 4), shade(-1, 4), shade(0, 0), shade(9, 4)]).toEqual([1, -0.5, 0, 1]);
});

test('modules are distinguished by their names', () => {
  expect(['mariadbd', 'libc.so.6', 'libc-2.31.so', 'ld-linux-x86-64.so.2', 'libstdc++.so.6', 'ha_rocksdb.so', '[kernel]', '[vdso]', ''].map(kindOf)).toEqual([
    'server', 'libc', 'libc', 'libc', 'library', 'library', 'kernel', 'libc', 'unknown',
  ]);
});

test('a label is cut to its room: first the parameters, then the name', () => {
  expect(label('do_command(THD*, bool)', 40)).toBe('do_command(THD*, bool)');
  expect(label('do_command(THD*, bool)', 12)).toBe('do_command');
  expect(label('do_command(THD*, bool)', 6)).toBe('do_co…');
  expect(label('(anonymous namespace)::f(int)', 26)).toBe('(anonymous namespace)::f');
  expect(label('do_command(THD*, bool)', 2)).toBe('');
});

test("the observer's time is added only on request", () => {
  const threads = ['connection', 'background', 'observer'];
  expect(kindsOf(threads, 0, false)).toEqual([0]);
  expect(kindsOf(threads, 'all', false)).toEqual([0, 1]);
  expect(kindsOf(threads, 0, true)).toEqual([0, 2]);
  expect(kindsOf(threads, 'all', true)).toEqual([0, 1, 2]);
});
