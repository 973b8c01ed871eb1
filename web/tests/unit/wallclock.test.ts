import { describe, expect, it } from 'vitest';
import type { Head } from '../../src/data/model.ts';
import type { Line } from '../../src/charts/timechart.ts';
import { panelsSvg, svgOf } from '../../src/lib/exports.ts';
import { daysOf, midnightOf, onWall, timeOfDay, unixTime, wallText, type ZoneOffset } from '../../src/lib/wallclock.ts';

const HOUR = 3600;
/** 2026-11-28 00:00 UTC, a Saturday. */
const SATURDAY = Date.UTC(2026, 10, 28) / 1000;
/** A run that began at this time. Its own clock is far from the wall's. */
const headAt = (unix_s: number, ...later: [number, number][]) => ({
  origin_ns: 5e15,
  run: { anchors: [[0, unix_s] as [number, number], ...later].map(([t, wall]) => ({ monotonic_ns: 5e15 + t * 1e9, wall_ns: wall * 1e9 })) },
}) as unknown as Head;
const utc: ZoneOffset = () => 0;
const east: ZoneOffset = () => 2 * HOUR;

describe('the time of day', () => {
  it('follows the anchor before a moment', () => {
    const head = headAt(SATURDAY, [100, SATURDAY + 200]);
    expect([unixTime(head, -1), unixTime(head, 99), unixTime(head, 101)].map((s) => (s ?? 0) - SATURDAY)).toEqual([-1, 99, 201]);
    expect(unixTime({ origin_ns: 0, run: { anchors: [] } } as unknown as Head, 3)).toBeNull();
    expect(daysOf({ origin_ns: 0, run: { anchors: [] } } as unknown as Head, { from: 0, to: 9 }, utc)).toEqual([]);
  });

  it('makes a part of each day, each at the same place for the same time', () => {
    const days = daysOf(headAt(SATURDAY + 23 * HOUR), { from: 0, to: 26 * HOUR }, utc);
    expect(days).toEqual([
      { from: 0, to: HOUR, begin: -23 * HOUR, day: 'Sat 28 Nov' },
      { from: HOUR, to: 25 * HOUR, begin: HOUR, day: 'Sun 29 Nov' },
      { from: 25 * HOUR, to: 26 * HOUR, begin: 25 * HOUR, day: 'Mon 30 Nov' },
    ]);
    // Noon of the Sunday, 13 hours after the run began.
    expect(13 * HOUR - (days[1]?.begin ?? 0)).toBe(12 * HOUR);
  });

  it('is that of the zone, also where its offset changes', () => {
    expect(daysOf(headAt(SATURDAY + 22 * HOUR), { from: 0, to: 60 }, east)).toMatchObject([{ begin: 0, day: 'Sun 29 Nov' }]);
    expect(midnightOf(SATURDAY + 22 * HOUR, east)).toBe(SATURDAY + 24 * HOUR);
    // At one o'clock the clocks go back by an hour.
    const autumn: ZoneOffset = (unix_s) => (unix_s < SATURDAY + HOUR ? HOUR : 0);
    const parts = daysOf(headAt(SATURDAY), { from: 0, to: 3 * HOUR }, autumn);
    expect(parts.map(({ from, begin }) => [from, from - begin])).toEqual([[0, HOUR], [HOUR, HOUR]]);
    expect(new Set(parts.map((part) => part.day)).size).toBe(1);
  });

  it('is written with what its step needs, and dates at midnight', () => {
    expect([timeOfDay(9.5 * HOUR, HOUR), timeOfDay(61, 5), timeOfDay(86_399.96, 0.1), timeOfDay(25 * HOUR, HOUR), timeOfDay(1.25, 0.05)]).toEqual(['09:30', '00:01:01', '00:00:00.0', '01:00', '00:00:01.25']);
    expect([wallText(0, HOUR, SATURDAY), wallText(25 * HOUR, HOUR, SATURDAY), wallText(24 * HOUR, HOUR, SATURDAY)]).toEqual(['28 Nov', '01:00', '29 Nov']);
    expect(onWall(headAt(SATURDAY + HOUR), { from: 10, to: 20 }, SATURDAY, utc)).toEqual({ from: 10, to: 20, begin: -HOUR, day: '' });
  });
});

describe('a picture of several runs', () => {
  const line = (label: string, v: number[]): Line => ({ label, color: 'red', suffix: '/s', column: { t: Float64Array.from(v, (_, at) => at), v: Float64Array.from(v) } });

  it('has one value axis for all', () => {
    const svg = panelsSvg('m', [{ name: 'a', lines: [line('a', [0, 10])] }, { name: 'b <', lines: [line('b', [0, 1000])] }], { from: 0, to: 1 }, false);
    expect(svg.match(/<svg /g)?.length).toBe(3);
    // The greatest value of both is on the axis of each.
    expect(svg.match(/>1k</g)?.length).toBe(2);
    expect(svg).toContain('b &lt;');
    expect(new Set(svg.match(/clipPath id="[^"]+"/g))).toHaveProperty('size', 2);
    expect(svgOf('a', [line('a', [0, 10])], { from: 0, to: 1 }, false)).not.toContain('>1k<');
  });

  it('has the text of its axis', () => {
    expect(svgOf('a', [line('a', [0, 1])], { from: 0, to: 7200 }, false, { timeText: timeOfDay })).toContain('>01:00<');
  });
});
