import { expect, test } from 'vitest';
import { boundEnd, knobAxis, labelRows, ratioAxis, ratioEnds, spansMuch, usersAxis, valueAxis } from '../../src/study/geometry.ts';
import { colorOf, courseCharts, curvePanels, dashOf, markOf, placeLines, styles } from '../../src/study/lines.ts';
import type { Course, Place } from '../../src/study/model.ts';

test('values that span more than a factor 50 are on a logarithmic axis, others begin at 0', () => {
  expect(spansMuch([1, 51])).toBe(true);
  expect(spansMuch([1, 50])).toBe(false);
  expect(spansMuch([0, 1000])).toBe(false);
  const axis = valueAxis([90, 100], 200, 0);
  expect([axis.isLog, axis.ticks[0]?.at]).toEqual([false, 0]);
  expect(axis.scale(0)).toBe(200);
  const cut = valueAxis([99.1, 99.8], 200, 0, true);
  expect([cut.isCut, cut.ticks[0]?.at, cut.ticks.at(-1)?.at]).toEqual([true, 99, 99.8]);
  expect(valueAxis([10, 99], 200, 0, true).isCut).toBe(undefined);
  const log = valueAxis([1, 1000], 200, 0);
  expect(log.isLog).toBe(true);
  expect(log.scale(10) - log.scale(100)).toBeCloseTo(log.scale(1) - log.scale(10));
});

test('an endless interval leaves room for the values', () => {
  expect(boundEnd(1e9, [100, 200])).toBe(320);
  expect(boundEnd(1e-9, [100, 200])).toBe(50);
  expect(boundEnd(210, [100, 200])).toBe(210);
});

test('numbers of users have a tick each, as far as there is room', () => {
  const axis = usersAxis([8, 1, 64], 0, 600);
  expect(axis.ticks.map((tick) => tick.text)).toEqual(['1', '8', '64']);
  expect(axis.scale(8) - axis.scale(1)).toBeCloseTo(axis.scale(64) - axis.scale(8));
  expect(axis.scale(1)).toBeGreaterThan(10);
  expect(usersAxis(Array.from({ length: 200 }, (_, at) => at + 1), 0, 600).ticks.length).toBeLessThan(21);
  expect(Number.isFinite(usersAxis([16], 0, 600).scale(16))).toBe(true);
});

test('a size in bytes has powers of two as ticks, other knobs have not', () => {
  const sizes = Array.from({ length: 14 }, (_, power) => 32_768 * 2 ** power);
  const axis = knobAxis('sort_buffer_size', sizes, 0, 700);
  expect(axis.isLog).toBe(true);
  expect(axis.ticks[0]?.text).toBe('32 KiB');
  expect(axis.ticks.every((tick) => Number.isInteger(Math.log2(tick.at)))).toBe(true);
  expect(knobAxis('thread_cache_size', [1, 10, 100], 0, 700).ticks.map((tick) => tick.text)).toContain('10');
  const plain = knobAxis('innodb_spin_wait_delay', [0, 6, 24, 40], 0, 700);
  expect(plain.isLog).toBe(false);
  expect(plain.ticks.length).toBeGreaterThan(2);
});

test('twice and half are as far from the baseline, and no difference has its tick', () => {
  const axis = ratioAxis(0.2, 5, 0, 600);
  expect(axis.scale(2) - axis.scale(1)).toBeCloseTo(axis.scale(1) - axis.scale(0.5));
  expect(axis.ticks.map((tick) => tick.text)).toEqual(['÷5', '÷3', '÷2', '−25 %', 'same', '+50 %', '×2', '×3', '×5']);
  const near = ratioAxis(0.9, 1.1, 0, 600);
  expect(near.ticks.map((tick) => tick.text)).toContain('0');
  expect(near.ticks[0]?.text.startsWith('−')).toBe(true);
});

test('one wild interval does not squeeze the others', () => {
  const row = (ratio: number, half: number, muted = false) => ({ ratio, t95: [ratio / half, ratio * half] as [number, number], seen: half, muted });
  const [low, high] = ratioEnds([row(1.02, 1.01), row(0.97, 40)], 3);
  expect(high).toBeLessThan(1.4);
  expect(low).toBeGreaterThan(0.7);
  const [, wide] = ratioEnds([row(3, 1.1)], 3);
  expect(wide).toBeGreaterThan(3.3);
  expect(ratioEnds([row(1.01, 40, true)], 3)[1]).toBeLessThan(1.1);
});

test('labels over lines never lie on each other', () => {
  const labels = [{ at: 100, text: 'x'.repeat(30) }, { at: 120, text: 'x'.repeat(30) }, { at: 500, text: 'xx' }, { at: 590, text: 'x'.repeat(20) }];
  const rows = labelRows(labels, 60, 600);
  expect(rows.map((row) => row.row).slice(0, 2)).toEqual([0, 1]);
  expect(rows[3]?.anchor).toBe('end');
});

test('lines differ in more than their colour', () => {
  const all = Array.from({ length: 32 }, (_, style) => `${colorOf(style)}${dashOf(style)}${markOf(style)}`);
  expect(new Set(all).size).toBe(32);
  expect(markOf(0)).not.toBe(markOf(1));
  expect([...styles(['a', 'b'], ['b', 'c'])]).toEqual([['a', 0], ['b', 1], ['c', 2]]);
});

test('a variant without a number has no line', () => {
  const point = { tuning: 'spin=6', users: 8, mean: 10, mean95: [9, 11] as [number, number], lowest: 9, highest: 11, starts: 1, unstable: true };
  const place: Place = { title: '', compared: [], points: [{ ...point, variant: 'b' }] };
  const lines = placeLines(place, ['a', 'b']);
  expect(lines.map((line) => [line.name, line.style])).toEqual([['b', 1]]);
  expect(lines[0]?.points[0]).toEqual({ x: 8, y: 10, low: 9, high: 11, note: 'spin=6; its starts differ by more than 15 %; 1 start' });
});

test('courses of one place and number of users share a chart, with each change once', () => {
  const course = (label: string, users: number, server: string, what: string): Course => ({
    name: label, server, condition: '', label, users, block: 0,
    moments: [{ at_s: 0.5, measures: { tps: 5, hits: 99 } }, { at_s: 1.5, measures: { tps: 6 } }],
    resized: what ? [{ what, at_s: 1, dip: null, starts: [] }] : [],
  });
  const charts = courseCharts([course('a', 8, 'x', 'pool = 1'), course('b', 8, 'x', 'pool = 1'), course('a', 8, 'y', 'pool = 1'), course('b', 8, 'y', '')], styles([], ['a', 'b']), { tps: 'transactions/s', hits: 'hits, %' }, 'hits, %');
  expect(charts.map((chart) => chart.title)).toEqual(['x', 'y']);
  expect(charts[0]?.changes).toEqual([{ x: 1, label: 'pool = 1' }]);
  expect(charts[1]?.changes).toEqual([{ x: 1, label: 'pool = 1 (a)' }]);
  expect(charts[0]?.panels.map((panel) => [panel.title, panel.lines.map((line) => line.points.length)])).toEqual([['hits, %', [1, 1]], ['transactions/s', [2, 2]]]);
});

test('a curve has its counters below it', () => {
  const curve = { name: 'a', knob: 'k', starts: 2, points: [{ value: 1, ms: 2, ms95: null, status: { passes: 3 } }], steps: [] };
  expect(curvePanels([curve], styles([], ['a'])).map((panel) => [panel.title, panel.lines[0]?.points])).toEqual([
    ['execution, ms', [{ x: 1, y: 2 }]],
    ['passes/execution', [{ x: 1, y: 3 }]],
  ]);
});
