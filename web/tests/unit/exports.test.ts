import { describe, expect, it } from 'vitest';
import { csvOf, svgOf } from '../../src/lib/exports.ts';

describe('exports', () => {
  const column = { t: Float64Array.of(0, 1, 2, 3), v: Float64Array.of(1, NaN, 3, 4) };
  const lines = [{ label: '=cmd()"<b>', color: '#123456', suffix: '/s', column }];

  it('writes exact values, gaps as nothing, and no formulas', () => {
    const csv = csvOf(lines, { from: 0, to: 3 }).split('\n');
    expect(csv[1]).toBe(`0,"'=cmd()""<b>","/s",1,,,,`);
    expect(csv[2]?.endsWith(',,,,,')).toBe(true);
    expect(csv.length).toBe(5);
  });

  it('draws a gap as one, and text as text', () => {
    const svg = svgOf('<script>', lines, { from: 0, to: 3 }, false);
    expect(svg).toContain('&lt;script&gt;');
    expect(svg).not.toContain('<b>');
    const path = /<path d="([^"]+)"/.exec(svg)?.[1] ?? '';
    expect(path.split('M').length - 1).toBe(2);
  });

  it('has an axis for the first unit and one for the others, and a logarithmic one where the chart has', () => {
    const other = { label: 'other', color: '#abcdef', suffix: 'ms', column: { t: column.t, v: Float64Array.of(1000, 2000, 3000, 4000) } };
    const [plain, log] = [false, true].map((isLog) => svgOf('t', [...lines, other], { from: 0, to: 3 }, isLog)) as [string, string];
    expect(plain).toContain('(ms, right)');
    expect(plain.match(/text-anchor="start"/g)?.length).toBeGreaterThan(3);
    expect(log).not.toBe(plain);
    expect(log).not.toContain('NaN');
  });

  it('draws no more points than pixels, and keeps a spike', () => {
    const many = 100_000;
    const dense = { t: Float64Array.from({ length: many }, (_, at) => at), v: Float64Array.from({ length: many }, (_, at) => (at === 777 ? 50 : 1)) };
    const svg = svgOf('t', [{ label: 'x', color: '#123456', suffix: '', column: dense }], { from: 0, to: many }, false);
    expect(svg.length).toBeLessThan(200_000);
    const tops = [...svg.matchAll(/<rect x="[\d.]+" y="([\d.]+)" width="1/g)].map((one) => Number(one[1]));
    expect(Math.min(...tops)).toBeLessThan(70);
  });
});
