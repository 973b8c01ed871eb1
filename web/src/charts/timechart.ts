/** A chart over time: uPlot gives axes, cursor and zoom; the lines are drawn here, dense ones as envelopes. */

import uPlot from 'uplot';
import type { Column } from '../data/model.ts';
import { envelope, gapLength, lowerBound, type Bucket } from '../lib/envelope.ts';
import { suffixesOf, valueRange } from '../lib/valueaxis.ts';
import { chartFont } from './style.ts';
import { clock, number, short } from '../lib/words.ts';

export interface Line {
  label: string;
  color: string;
  suffix: string;
  column: Column;
}

export interface Band {
  from: number;
  to: number;
  label: string;
  /** The label where there is less room. */
  short: string;
  color: string;
  warmup: boolean;
  faded: boolean;
}

export interface Mark {
  t: number;
  color: string;
  /** The text next to the mark; empty if it has none. */
  label: string;
}

export interface Drawing {
  lines: Line[];
  bands: Band[];
  marks: Mark[];
  marked: { from: number; to: number } | null;
  log: boolean;
  view: { from: number; to: number };
  /** Lines of charts next to this one, with which it shares its value axes; absent: its own. */
  scaledBy?: Line[];
  /** Another chart shows the value axis. */
  isAxisHidden?: boolean;
  /** A place on the axis as text; absent: minutes and seconds. */
  timeText?: (t: number, step_s: number) => string;
}

export interface Palette {
  ink: string;
  muted: string;
  grid: string;
  paper: string;
  accent: string;
}

export interface Handlers {
  onzoom: (from: number, to: number) => void;
  onreset: () => void;
  onpoint: (t: number | null) => void;
}

/** Width of a value axis, and of the room for half a label of time where there is none. */
export const [AXIS, NO_AXIS] = [52, 22];
const BAND_LABELS = 18;
/** More samples than this in a pixel column, and a line becomes an envelope. */
const DENSE = 1.5;
const SPARSE_PX = 9;

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return { ink: get('--ink'), muted: get('--muted'), grid: get('--grid'), paper: get('--paper'), accent: get('--accent') };
}

export class TimeChart {
  #plot: uPlot;
  #drawing: Drawing;
  #suffixes: string[] = [];
  #gaps = new WeakMap<Column, number>();
  #element: HTMLElement;

  constructor(element: HTMLElement, drawing: Drawing, size: { width: number; height: number }, handlers: Handlers) {
    this.#element = element;
    this.#drawing = drawing;
    this.#suffixes = suffixesOf(drawing.scaledBy ?? drawing.lines);
    this.#plot = new uPlot(this.#options(size, handlers), this.#axisData(), element);
    this.#plot.over.addEventListener('dblclick', () => handlers.onreset());
    this.#plot.over.addEventListener('mouseleave', () => handlers.onpoint(null));
  }

  resize(width: number, height: number): void {
    this.#plot.setSize({ width, height });
  }

  draw(drawing: Drawing): void {
    this.#drawing = drawing;
    this.#suffixes = suffixesOf(drawing.scaledBy ?? drawing.lines);
    this.#plot.setData(this.#axisData(), false);
    this.#plot.setScale('x', { min: drawing.view.from, max: drawing.view.to });
  }

  destroy(): void {
    this.#plot.destroy();
  }

  /** uPlot gets only the span of time; this class keeps the samples. */
  #axisData(): uPlot.AlignedData {
    const { from, to } = this.#drawing.view;
    return [[from, to], [null, null], [null, null]];
  }

  #range(scale: number): uPlot.Range.MinMax {
    const columns = this.#linesOf(scale).map((line) => line.column);
    return valueRange(columns, this.#drawing.view, this.#drawing.log);
  }

  #linesOf(scale: number): Line[] {
    return (this.#drawing.scaledBy ?? this.#drawing.lines).filter((line) => Math.min(1, this.#suffixes.indexOf(line.suffix)) === scale);
  }

  #options(size: { width: number; height: number }, handlers: Handlers): uPlot.Options {
    const palette = readPalette(this.#element);
    const axis = { stroke: palette.muted, font: chartFont(), ticks: { show: false }, border: { show: false } };
    const isHidden = this.#drawing.isAxisHidden ?? false;
    const valueAxis = (scale: string, side: 1 | 3): uPlot.Axis => ({
      ...axis,
      scale,
      side,
      size: isHidden ? NO_AXIS : AXIS,
      gap: 4,
      space: 26,
      grid: { show: side === 3, stroke: palette.grid, width: 1, filter: (_plot, splits) => splits.map((split) => (this.#isLabelled(split) ? split : null)) },
      show: side === 3 || this.#suffixes.length > 1,
      values: (_plot, splits) => (isHidden ? splits.map(() => '') : this.#valueLabels(splits)),
    });
    const range = (scale: number) => (): uPlot.Range.MinMax => this.#range(scale);
    const distr = this.#drawing.log ? 3 : 1;
    return {
      ...size,
      padding: [BAND_LABELS, this.#suffixes.length > 1 ? 0 : 22, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: 'time', scales: ['x', null] },
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        y: false,
      },
      scales: {
        x: { time: false, range: () => [this.#drawing.view.from, this.#drawing.view.to] },
        y: { range: range(0), distr },
        y2: { range: range(1), distr },
      },
      axes: [
        {
          ...axis,
          size: 24,
          gap: 4,
          space: 70,
          grid: { show: false },
          incrs: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000],
          values: (_plot, splits, _axis, _space, step) => splits.map((split) => (this.#drawing.timeText ?? clock)(split, step)),
        },
        valueAxis('y', 3),
        valueAxis('y2', 1),
      ],
      series: [{}, { scale: 'y', paths: () => null }, { scale: 'y2', paths: () => null }],
      hooks: {
        drawClear: [(plot) => this.#drawBands(plot, palette)],
        draw: [(plot) => this.#drawLines(plot, palette)],
        setSelect: [
          (plot) => {
            if (plot.select.width < 4) return;
            const from = plot.posToVal(plot.select.left, 'x');
            const to = plot.posToVal(plot.select.left + plot.select.width, 'x');
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            handlers.onzoom(from, to);
          },
        ],
        setCursor: [
          (plot) => {
            const { left = -1, event } = plot.cursor;
            // The other charts follow the one under the pointer: only that one reports.
            if (event && left >= 0) handlers.onpoint(plot.posToVal(left, 'x'));
          },
        ],
      },
    };
  }

  /** Returns short labels if they differ from tick to tick, else full ones. */
  #valueLabels(splits: number[]): string[] {
    const shown = splits.filter((split) => this.#isLabelled(split));
    const write = new Set(shown.map(short)).size === shown.length ? short : number;
    return splits.map((split) => (this.#isLabelled(split) ? write(split) : ''));
  }

  /** On a log axis only powers of ten are labelled. */
  #isLabelled(split: number): boolean {
    if (!this.#drawing.log) return true;
    const power = Math.log10(split);
    return Math.abs(power - Math.round(power)) < 1e-6;
  }

  #drawBands(plot: uPlot, palette: Palette): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const x = (t: number) => Math.round(plot.valToPos(t, 'x', true));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    ctx.font = chartFont(ratio);
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    for (const band of this.#drawing.bands) {
      const left = x(band.from);
      const width = Math.max(1, x(band.to) - left);
      ctx.globalAlpha = (band.warmup ? 0.05 : 0.13) * (band.faded ? 0.35 : 1);
      ctx.fillStyle = band.color;
      ctx.fillRect(left, bbox.top, width, bbox.height);
      if (band.warmup) continue;
      ctx.globalAlpha = band.faded ? 0.3 : 0.9;
      ctx.fillRect(left, bbox.top - 2 * ratio, width, 2 * ratio);
      const visibleLeft = Math.max(left, bbox.left);
      const visible = Math.min(left + width, bbox.left + bbox.width) - visibleLeft;
      const label = [band.label, band.short].find((text) => ctx.measureText(text).width + 4 * ratio <= visible);
      if (label === undefined) continue;
      ctx.fillStyle = palette.muted;
      ctx.globalAlpha = band.faded ? 0.5 : 1;
      ctx.fillText(label, visibleLeft + visible / 2, bbox.top - 9 * ratio);
    }
    const { marked } = this.#drawing;
    if (marked) {
      ctx.globalAlpha = 0.9;
      ctx.strokeStyle = palette.accent;
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.strokeRect(x(marked.from), bbox.top + ratio, x(marked.to) - x(marked.from), bbox.height - 2 * ratio);
    }
    ctx.restore();
  }

  #drawLines(plot: uPlot, palette: Palette): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    // A line along the foot is drawn in its whole width.
    ctx.rect(bbox.left, bbox.top - 2 * ratio, bbox.width, bbox.height + 4 * ratio);
    ctx.clip();
    this.#drawMarks(plot, palette);
    for (const line of this.#drawing.lines) {
      const scale = this.#suffixes.indexOf(line.suffix) >= 1 ? 'y2' : 'y';
      this.#drawLine(plot, line, scale);
    }
    this.#drawUnits(plot, palette);
    this.#drawMarkLabels(plot, palette);
    ctx.restore();
  }

  /** Draws the unit of each axis at its top, within the plot. */
  #drawUnits(plot: uPlot, palette: Palette): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    ctx.font = chartFont(ratio);
    ctx.fillStyle = palette.muted;
    ctx.textBaseline = 'top';
    const write = (text: string, x: number, align: CanvasTextAlign) => {
      ctx.textAlign = align;
      ctx.fillText(text, x, bbox.top + 3 * ratio);
    };
    const [first, ...others] = this.#suffixes;
    if (first) write(`↑ ${first}`, bbox.left + 4 * ratio, 'left');
    if (others.length > 0) write(`${others.join(', ')} ↑`, bbox.left + bbox.width - 4 * ratio, 'right');
  }

  #drawMarks(plot: uPlot, palette: Palette): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    for (const mark of this.#drawing.marks) {
      const x = Math.round(plot.valToPos(mark.t, 'x', true)) + 0.5;
      ctx.strokeStyle = mark.color || palette.muted;
      ctx.fillStyle = ctx.strokeStyle;
      ctx.globalAlpha = 0.7;
      ctx.lineWidth = ratio;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      const base = bbox.top + bbox.height;
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - 4 * ratio, base);
      ctx.lineTo(x + 4 * ratio, base);
      ctx.lineTo(x, base - 6 * ratio);
      ctx.fill();
    }
  }

  /** Draws the text to the right of each mark, up to the next text or the plot's end, over the lines with a halo. */
  #drawMarkLabels(plot: uPlot, palette: Palette): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const { from, to } = this.#drawing.view;
    const labelledMarks = this.#drawing.marks.filter((mark) => mark.label !== '' && from <= mark.t && mark.t <= to);
    const x = (mark: Mark) => plot.valToPos(mark.t, 'x', true);
    ctx.font = chartFont(ratio);
    ctx.textAlign = 'left';
    ctx.textBaseline = 'bottom';
    ctx.lineJoin = 'round';
    labelledMarks.forEach((mark, number) => {
      const next = labelledMarks[number + 1];
      const end = next ? x(next) : bbox.left + bbox.width;
      const text = fitText(ctx, mark.label, end - x(mark) - 12 * ratio);
      const [left, base] = [x(mark) + 6 * ratio, bbox.top + bbox.height - 4 * ratio];
      ctx.globalAlpha = 0.9;
      ctx.strokeStyle = palette.paper;
      ctx.lineWidth = 3 * ratio;
      ctx.strokeText(text, left, base);
      ctx.globalAlpha = 1;
      ctx.fillStyle = mark.color;
      ctx.fillText(text, left, base);
    });
  }

  #drawLine(plot: uPlot, line: Line, scale: string): void {
    const { from, to } = this.#drawing.view;
    const { column } = line;
    const begin = lowerBound(column.t, from);
    const end = lowerBound(column.t, to);
    const columns = Math.floor(plot.bbox.width / uPlot.pxRatio);
    const isDense = end - begin > columns * DENSE;
    if (isDense) this.#drawEnvelope(plot, line, scale, columns);
    else this.#drawSamples(plot, line, scale, Math.max(0, begin - 1), Math.min(column.t.length, end + 1));
  }

  #drawSamples(plot: uPlot, line: Line, scale: string, begin: number, end: number): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const { t, v, band } = line.column;
    const gap = this.#gapOf(line.column);
    const [x, y] = [this.#toX(plot), this.#toY(plot, scale)];
    ctx.strokeStyle = line.color;
    ctx.fillStyle = line.color;
    if (band) {
      const wide = Math.max(ratio, Math.min(6 * ratio, bbox.width / Math.max(1, end - begin)));
      const left = (index: number) => x(t[index] as number) - wide / 2;
      this.#drawBars(ctx, begin, end, left, wide, y, band.min, band.max, 0.18);
      this.#drawBars(ctx, begin, end, left, wide, y, band.q1, band.q3, 0.35);
    }
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.5 * ratio;
    ctx.lineJoin = 'round';
    ctx.beginPath();
    const isSparse = bbox.width / ratio / Math.max(1, end - begin) > SPARSE_PX;
    const dotted: number[] = [];
    let before = NaN;
    for (let index = begin; index < end; index++) {
      const [at, value] = [t[index] as number, v[index] as number];
      if (Number.isNaN(value)) {
        before = NaN;
        continue;
      }
      const follows = at - before <= gap;
      if (follows) ctx.lineTo(x(at), y(value));
      else ctx.moveTo(x(at), y(value));
      before = at;
      const next = index + 1;
      const isAlone = !follows && (next >= end || Number.isNaN(v[next]) || (t[next] as number) - at > gap);
      if (isSparse || isAlone) dotted.push(index);
    }
    ctx.stroke();
    for (const index of dotted) {
      ctx.beginPath();
      ctx.arc(x(t[index] as number), y(v[index] as number), 1.8 * ratio, 0, Math.PI * 2);
      ctx.fill();
    }
  }

  /** From one value to the other at each sample. What the line itself covers is left to it. */
  #drawBars(ctx: CanvasRenderingContext2D, begin: number, end: number, left: (index: number) => number, wide: number, y: (value: number) => number, low: Float64Array, high: Float64Array, alpha: number): void {
    const least = uPlot.pxRatio;
    ctx.globalAlpha = alpha;
    for (let index = begin; index < end; index++) {
      const top = y(high[index] as number);
      const height = y(low[index] as number) - top;
      if (height >= least) ctx.fillRect(left(index), top, wide, height);
    }
  }

  #drawEnvelope(plot: uPlot, line: Line, scale: string, columns: number): void {
    const { ctx, bbox } = plot;
    const { from, to } = this.#drawing.view;
    const ratio = uPlot.pxRatio;
    const buckets = envelope(line.column, from, to, columns);
    const wide = bbox.width / columns;
    const y = this.#toY(plot, scale);
    const of = (value: (bucket: Bucket) => number) => Float64Array.from(buckets, (bucket) => (bucket.count > 0 ? value(bucket) : NaN));
    ctx.fillStyle = line.color;
    ctx.strokeStyle = line.color;
    ctx.lineWidth = 1.2 * ratio;
    const left = (number: number) => bbox.left + number * wide;
    this.#drawBars(ctx, 0, columns, left, Math.ceil(wide), y, of((bucket) => bucket.min), of((bucket) => bucket.max), 0.22);
    this.#drawBars(ctx, 0, columns, left, Math.ceil(wide), y, of((bucket) => bucket.q1), of((bucket) => bucket.q3), 0.4);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    let pen = false;
    buckets.forEach((bucket, number) => {
      if (bucket.count > 0 && pen) ctx.lineTo(left(number) + wide / 2, y(bucket.median));
      else if (bucket.count > 0) ctx.moveTo(left(number) + wide / 2, y(bucket.median));
      pen = bucket.count > 0;
    });
    ctx.stroke();
  }

  /** Does what `valToPos` does, with one calculation for many values. */
  #toX({ bbox }: uPlot): (t: number) => number {
    const { from, to } = this.#drawing.view;
    const factor = bbox.width / (to - from);
    return (t) => bbox.left + (t - from) * factor;
  }

  /** Zero has no place on a log axis: it is drawn at the axis' foot. */
  #toY({ bbox, scales }: uPlot, scale: string): (value: number) => number {
    const { min = 0, max = 1 } = scales[scale] ?? {};
    const [low, high] = [min ?? 0, max ?? 1];
    const foot = bbox.top + bbox.height;
    if (!this.#drawing.log) {
      const factor = bbox.height / (high - low);
      return (value) => foot - (value - low) * factor;
    }
    const factor = bbox.height / Math.log10(high / low);
    return (value) => foot - (value > 0 ? Math.log10(value / low) : 0) * factor;
  }

  #gapOf(column: Column): number {
    let gap = this.#gaps.get(column);
    if (gap === undefined) {
      gap = gapLength(column.t);
      this.#gaps.set(column, gap);
    }
    return gap;
  }
}

/** Returns as much of a text as fits, with an ellipsis; empty if not even a few letters fit. */
function fitText(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  const letters = Math.floor((text.length * room) / ctx.measureText(text).width) - 1;
  return letters < 4 ? '' : `${text.slice(0, letters).trimEnd()}…`;
}
