/** A chart's lines as files: exact values as CSV, a drawing as SVG. Pure but for `save`. */

import type { Line } from '../charts/timechart.ts';
import { clock, num, short } from '../lib/format.ts';
import { linear } from '../lib/scale.ts';
import { extent, gapLength, lowerBound } from '../lib/envelope.ts';
import type { Span } from '../lib/desk.svelte.ts';

/** Values as they were read, one line a value; of an envelope its five numbers. */
export function csvOf(lines: Line[], view: Span): string {
  const rows = ['seconds,series,unit,value,min,lower_quartile,upper_quartile,max'];
  const cell = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value));
  for (const { label, suffix, column } of lines) {
    const end = lowerBound(column.t, view.to);
    for (let at = lowerBound(column.t, view.from); at < end; at++) {
      const { band } = column;
      const more = band ? [band.min[at], band.q1[at], band.q3[at], band.max[at]] : [undefined, undefined, undefined, undefined];
      rows.push([cell(column.t[at]), quoted(label), quoted(suffix), cell(column.v[at]), ...more.map(cell)].join(','));
    }
  }
  return `${rows.join('\n')}\n`;
}

/** A name may hold anything; one that begins like a formula is no formula. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

const WIDTH = 960;
const HEIGHT = 320;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 44, 34];

export function svgOf(title: string, lines: Line[], view: Span): string {
  const extents = lines.flatMap((line) => extent(line.column, view.from, view.to) ?? []);
  const low = Math.min(0, ...extents);
  const high = Math.max(low + 1e-9, ...extents) * (extents.length > 0 ? 1.05 : 1);
  const x = linear(view.from, view.to, LEFT, WIDTH - RIGHT);
  const y = linear(low, high, HEIGHT - BOTTOM, TOP);
  const parts: string[] = [];
  for (const tick of steps(low, high, 5)) {
    parts.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="#e9ecee"/>`);
    parts.push(`<text x="${LEFT - 6}" y="${at(y(tick) + 4)}" text-anchor="end">${escaped(short(tick))}</text>`);
  }
  for (const tick of steps(view.from, view.to, 8, CLOCK_STEPS)) {
    parts.push(`<text x="${at(x(tick))}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${escaped(clock(tick))}</text>`);
  }
  let legend = LEFT;
  for (const line of lines) {
    parts.push(shape(line, view, x, y));
    const words = `${line.label}${line.suffix === '' ? '' : ` (${line.suffix})`}`;
    parts.push(`<rect x="${legend}" y="28" width="12" height="4" fill="${line.color}"/><text x="${legend + 16}" y="34">${escaped(words)}</text>`);
    legend += 30 + words.length * 6.6;
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#5d6873">` +
    `<rect width="100%" height="100%" fill="#fdfdfc"/><text x="${LEFT}" y="18" font-size="14" font-weight="600" fill="#1b2127">${escaped(title)}</text>` +
    `<clipPath id="plot"><rect x="${LEFT}" y="${TOP - 2}" width="${WIDTH - LEFT - RIGHT}" height="${HEIGHT - TOP - BOTTOM + 4}"/></clipPath>` +
    `${parts.join('')}<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(Math.max(0, low)))}" y2="${at(y(Math.max(0, low)))}" stroke="#5d6873"/></svg>\n`
  );
}

function shape(line: Line, view: Span, x: (t: number) => number, y: (v: number) => number): string {
  const { t, v, band } = line.column;
  const gap = gapLength(t);
  const begin = Math.max(0, lowerBound(t, view.from) - 1);
  const end = Math.min(t.length, lowerBound(t, view.to) + 1);
  let path = '';
  let before = NaN;
  const shades: string[] = [];
  const wide = Math.max(1, (WIDTH - LEFT - RIGHT) / Math.max(1, end - begin));
  for (let index = begin; index < end; index++) {
    const [time, value] = [t[index] as number, v[index] as number];
    if (Number.isNaN(value)) {
      before = NaN;
      continue;
    }
    path += `${Number.isNaN(before) || time - before > gap ? 'M' : 'L'}${at(x(time))} ${at(y(value))}`;
    before = time;
    if (!band) continue;
    const [top, foot] = [y(band.max[index] as number), y(band.min[index] as number)];
    shades.push(`<rect x="${at(x(time) - wide / 2)}" y="${at(top)}" width="${at(wide)}" height="${at(Math.max(0.5, foot - top))}"/>`);
  }
  const shade = shades.length > 0 ? `<g fill="${line.color}" fill-opacity="0.2">${shades.join('')}</g>` : '';
  return `<g clip-path="url(#plot)">${shade}<path d="${path}" fill="none" stroke="${line.color}" stroke-width="1.4" stroke-linejoin="round"/></g>`;
}

/** Steps of time that are whole on a clock, in seconds. */
const CLOCK_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/** Multiples of a round step between two values, about `count` of them. */
function steps(from: number, to: number, count: number, round?: number[]): number[] {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const sizes = round ?? [1, 2, 2.5, 5, 10].map((times) => times * power);
  const step = sizes.find((size) => size >= rough) ?? (sizes.at(-1) as number);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step);
}

const at = (value: number) => String(Math.round(value * 100) / 100);

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** The chart's canvas with its title above and its legend below, in the page's own colours. */
export function pngOf(title: string, lines: Line[], plot: HTMLCanvasElement, readings: string[]): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const style = getComputedStyle(document.documentElement);
  const canvas = document.createElement('canvas');
  const [head, foot] = [26 * ratio, 26 * ratio];
  [canvas.width, canvas.height] = [plot.width, plot.height + head + foot];
  const ctx = canvas.getContext('2d');
  if (!ctx) return Promise.resolve(null);
  ctx.fillStyle = style.getPropertyValue('--paper');
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = style.getPropertyValue('--ink');
  ctx.font = `600 ${13 * ratio}px system-ui, sans-serif`;
  ctx.fillText(title, 8 * ratio, 17 * ratio);
  ctx.drawImage(plot, 0, head);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  let left = 52 * ratio;
  lines.forEach((line, index) => {
    const words = `${line.label} ${readings[index] ?? num(NaN)}`;
    ctx.fillStyle = line.color;
    ctx.fillRect(left, canvas.height - 14 * ratio, 10 * ratio, 4 * ratio);
    ctx.fillStyle = style.getPropertyValue('--ink');
    ctx.fillText(words, left + 14 * ratio, canvas.height - 8 * ratio);
    left += ctx.measureText(words).width + 30 * ratio;
  });
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
