/** A chart's lines as files: exact values as CSV, a drawing as SVG. Pure, except for `save`. */

import type { Line } from '../charts/timechart.ts';
import type { Column } from '../data/model.ts';
import type { Span } from './desk.svelte.ts';
import { quoteCsv } from './drawing.ts';
import { envelope, gapLength, lowerBound } from './envelope.ts';
import { linear, log10, logTicks, type Scale } from './scale.ts';
import { suffixesOf, valueRange } from './valueaxis.ts';
import { clock, short } from './words.ts';

/** Values as they were read, one line per value; of an envelope its five numbers. */
export function csvOf(lines: Line[], view: Span): string {
  const rows = ['seconds,series,unit,value,min,lower_quartile,upper_quartile,max'];
  const cell = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value));
  for (const { label, suffix, column } of lines) {
    const end = lowerBound(column.t, view.to);
    for (let at = lowerBound(column.t, view.from); at < end; at++) {
      const { band } = column;
      const more = band ? [band.min[at], band.q1[at], band.q3[at], band.max[at]] : [undefined, undefined, undefined, undefined];
      rows.push([cell(column.t[at]), quoteCsv(label), quoteCsv(suffix), cell(column.v[at]), ...more.map(cell)].join(','));
    }
  }
  return `${rows.join('\n')}\n`;
}

const WIDTH_ALONE = 960;
/** Of one of several drawings next to each other, and how many are in a row. */
const [PANEL_WIDTH, PANELS_IN_ROW] = [420, 4];
/** Of the title above them. */
const PANELS_TOP = 26;
/** Of the plot with its axes. */
const PLOT_HEIGHT = 290;
const [LEFT, BOTTOM] = [64, 34];
/** The first row of the legend, below the title, and the height of a row. */
const [LEGEND_TOP, LEGEND_ROW] = [34, 18];
/** Of a letter of the legend, about. */
const LETTER = 6.6;
/** Without and with an axis there. */
const RIGHTS = [16, 64] as const;
/** More samples than this a pixel are drawn as an envelope. */
const DENSE = 1.5;

interface DrawingOptions {
  width?: number;
  /** Lines of drawings next to this one, with which it shares its value axes. */
  scaledBy?: Line[] | undefined;
  timeText?: ((t: number, step_s: number) => string) | undefined;
  /** Distinguishes it from other drawings of one file. */
  id?: string;
}

/** The chart as the page draws it: on a white page, with its axes and its legend. */
export function svgOf(title: string, lines: Line[], view: Span, log: boolean, { width: WIDTH = WIDTH_ALONE, scaledBy = lines, timeText = clock, id = 'plot' }: DrawingOptions = {}): string {
  const suffixes = suffixesOf(scaledBy);
  const isRight = (line: Line) => suffixes.indexOf(line.suffix) > 0;
  const right = WIDTH - (suffixes.length > 1 ? RIGHTS[1] : RIGHTS[0]);
  const x = linear(view.from, view.to, LEFT, right);
  const entries = legendOf(lines.map((line) => `${line.label}${line.suffix === '' ? '' : ` (${line.suffix}${isRight(line) ? ', right' : ''})`}`), right);
  const TOP = LEGEND_TOP + LEGEND_ROW * ((entries.at(-1)?.row ?? 0) + 1) - 8;
  const HEIGHT = TOP + PLOT_HEIGHT - 14;
  const parts: string[] = [];
  const axes = (suffixes.length > 1 ? [false, true] : [false]).map((onRight) => {
    const [low, high] = valueRange(scaledBy.filter((line) => isRight(line) === onRight).map((line) => line.column), view, log);
    const y = (log ? log10 : linear)(low, high, HEIGHT - BOTTOM, TOP);
    for (const tick of log ? logTicks(low, high) : steps(low, high, 5)) {
      const [edge, anchor] = onRight ? [right + 6, 'start'] : [LEFT - 6, 'end'];
      if (!onRight) parts.push(`<line x1="${LEFT}" x2="${right}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="#e9ecee"/>`);
      parts.push(`<text x="${edge}" y="${at(y(tick) + 4)}" text-anchor="${anchor}">${escapeHtml(short(tick))}</text>`);
    }
    return y;
  });
  const ticks = steps(view.from, view.to, Math.round(WIDTH / 120), CLOCK_STEPS);
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  for (const tick of ticks) {
    parts.push(`<text x="${at(x(tick))}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${escapeHtml(timeText(tick, step))}</text>`);
  }
  lines.forEach((line, index) => {
    parts.push(shape(line, view, x, axes[isRight(line) ? 1 : 0] as Scale, right - LEFT, id));
    const { text, left, row } = entries[index] as LegendEntry;
    const y = LEGEND_TOP + LEGEND_ROW * row;
    parts.push(`<rect x="${at(left)}" y="${y - 6}" width="12" height="4" fill="${line.color}"/><text x="${at(left + 16)}" y="${y}">${escapeHtml(text)}</text>`);
  });
  const foot = HEIGHT - BOTTOM;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#5d6873">` +
    `<rect width="100%" height="100%" fill="#fdfdfc"/><text x="${LEFT}" y="18" font-size="14" font-weight="600" fill="#1b2127">${escapeHtml(title)}</text>` +
    `<clipPath id="${id}"><rect x="${LEFT}" y="${TOP - 2}" width="${right - LEFT}" height="${foot - TOP + 4}"/></clipPath>` +
    `${parts.join('')}<line x1="${LEFT}" x2="${right}" y1="${foot}" y2="${foot}" stroke="#5d6873"/></svg>\n`
  );
}

/** Charts next to each other, with one value axis for all. */
export function panelsSvg(title: string, panels: { name: string; lines: Line[] }[], view: Span, log: boolean, timeText?: (t: number, step_s: number) => string): string {
  const scaledBy = panels.flatMap((panel) => panel.lines);
  const columns = Math.min(PANELS_IN_ROW, panels.length);
  const drawn = panels.map(({ name, lines }, place) => svgOf(name, lines, view, log, { width: PANEL_WIDTH, scaledBy, timeText, id: `plot-${place}` }));
  const height = Math.max(0, ...drawn.map((svg) => Number(/ height="(\d+)"/.exec(svg)?.[1] ?? 0)));
  const placed = drawn.map((svg, place) => svg.replace('<svg ', `<svg x="${(place % columns) * PANEL_WIDTH}" y="${PANELS_TOP + Math.floor(place / columns) * height}" `));
  const [width, all] = [columns * PANEL_WIDTH, PANELS_TOP + Math.ceil(panels.length / columns) * height];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${all}" viewBox="0 0 ${width} ${all}" font-family="system-ui, sans-serif">` +
    `<rect width="100%" height="100%" fill="#fdfdfc"/><text x="${LEFT}" y="18" font-size="15" font-weight="600" fill="#1b2127">${escapeHtml(title)}</text>${placed.join('')}</svg>\n`
  );
}

interface LegendEntry {
  text: string;
  left: number;
  row: number;
}

/** Places the names of lines next to each other, in as many rows as they need. A name that is wider than the chart is cut. */
function legendOf(names: string[], right: number): LegendEntry[] {
  let [left, row] = [LEFT, 0];
  return names.map((name) => {
    const longest = Math.floor((right - LEFT - 30) / LETTER);
    const text = name.length > longest ? `${name.slice(0, longest - 1)}…` : name;
    const width = 30 + text.length * LETTER;
    if (left > LEFT && left + width > right) [left, row] = [LEFT, row + 1];
    const entry = { text, left, row };
    left += width;
    return entry;
  });
}

/** Returns only as much of a column as this many pixels can show. */
function drawable(column: Column, { from, to }: Span, pixels: number): Column {
  const begin = Math.max(0, lowerBound(column.t, from) - 1);
  const end = Math.min(column.t.length, lowerBound(column.t, to) + 1);
  const part = (values: Float64Array) => values.subarray(begin, end);
  const { band } = column;
  if (end - begin <= pixels * DENSE) {
    const cut = { t: part(column.t), v: part(column.v) };
    return band ? { ...cut, band: { min: part(band.min), q1: part(band.q1), q3: part(band.q3), max: part(band.max) } } : cut;
  }
  const buckets = envelope(column, from, to, pixels);
  const of = (value: (bucket: (typeof buckets)[number]) => number) => Float64Array.from(buckets, (bucket) => (bucket.count > 0 ? value(bucket) : NaN));
  const t = Float64Array.from(buckets, (_, index) => from + ((index + 0.5) / pixels) * (to - from));
  return { t, v: of((bucket) => bucket.median), band: { min: of((bucket) => bucket.min), q1: of((bucket) => bucket.q1), q3: of((bucket) => bucket.q3), max: of((bucket) => bucket.max) } };
}

function shape(line: Line, view: Span, x: Scale, y: Scale, pixels: number, clip: string): string {
  const { t, v, band } = drawable(line.column, view, pixels);
  const gap = gapLength(t);
  let path = '';
  let before = NaN;
  const shades: string[] = [];
  const wide = Math.max(1, pixels / Math.max(1, t.length));
  for (let index = 0; index < t.length; index++) {
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
  return `<g clip-path="url(#${clip})">${shade}<path d="${path}" fill="none" stroke="${line.color}" stroke-width="1.4" stroke-linejoin="round"/></g>`;
}

/** Steps of time that are whole on a clock, in seconds. */
const CLOCK_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800];

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

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
