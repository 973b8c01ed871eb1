/** Draws threads over time on a canvas: rows of stacked states, single waits and samples, times, levels and names. */

import { ticks } from '../lib/scale.ts';
import { between, bucketAt, singlesIn, stackStates, type Lines, type Row, type RunningSums, type Singles, type Span } from '../lib/timeline.ts';
import { chartFont, sizeCanvas } from './style.ts';
import { clock } from '../lib/words.ts';

/** Room for names on the left, and for times and levels above the rows. */
export const LEFT = 168;
export const HEAD = 34;
const GAP = 1;
/** The highest row. */
export const ROW_MAX = 64;
/** Rows of threads carry names from this height on. */
const NAMED = 11;
/** Single waits and samples are drawn if a pixel is at most this many seconds. */
const SINGLES_PX_S = 0.005;
/** The opacity of the states below them. */
const BENEATH = 0.38;

export interface LevelMark {
  from: number;
  label: string;
}

export interface Drawing {
  lines: Lines;
  rows: Row[];
  running: (row: Row) => RunningSums;
  /** Read where they are needed. */
  singles: Singles | null;
  span: Span;
  levels: LevelMark[];
  /** By place in the lines' states: red, green, blue. */
  colors: Rgb[];
  /** By place in the head's states: any colour that CSS knows. */
  stateColors: string[];
  /** The order in which states are stacked, from the foot. */
  order: number[];
  /** Two parts of a row's name. */
  names: (row: Row) => [string, string];
  ink: string;
  muted: string;
  grid: string;
  paper: Rgb;
  /** Position of the row that the keyboard is at, −1: none. */
  focused: number;
}

export interface View {
  width: number;
  height: number;
  /** How far the rows are scrolled. */
  top: number;
}

export function showsSingles(span: Span, width: number): boolean {
  return (span.to - span.from) / Math.max(1, width - LEFT) <= SINGLES_PX_S;
}

export function draw(canvas: HTMLCanvasElement, drawing: Drawing, view: View): void {
  const surface = sizeCanvas(canvas, view.width, view.height);
  if (!surface) return;
  const { context, ratio, wide, high } = surface;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = css(drawing.paper);
  context.fillRect(0, 0, wide, high);
  states(context, drawing, view, ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = chartFont();
  context.textBaseline = 'middle';
  if (drawing.singles && showsSingles(drawing.span, view.width)) singles(context, drawing, drawing.singles, view);
  above(context, drawing, view);
  names(context, drawing, view);
}

/** Yields the visible rows with their tops and positions. */
function* visibleRows(drawing: Drawing, view: View): Generator<[Row, number, number]> {
  for (const [position, row] of drawing.rows.entries()) {
    const y = HEAD + row.top - view.top;
    if (y + row.height > HEAD && y < view.height) yield [row, y, position];
  }
}

/** Draws the states' shares of each row's time, one column per pixel of the screen. */
function states(context: CanvasRenderingContext2D, drawing: Drawing, view: View, ratio: number): void {
  const { lines, span, order } = drawing;
  const left = Math.round(LEFT * ratio);
  const wide = Math.round(view.width * ratio) - left;
  const top = Math.round(HEAD * ratio);
  const high = Math.round(view.height * ratio) - top;
  if (wide <= 0 || high <= 0) return;
  const image = new ImageData(wide, high);
  const pixels = new Uint32Array(image.data.buffer).fill(packed(...drawing.paper));
  const isFaint = drawing.singles !== null && showsSingles(span, view.width);
  /** Red, green and blue of each state. */
  const colors = Float32Array.from(drawing.colors.flatMap((color) => (isFaint ? mixColors(color, drawing.paper, BENEATH) : color)));
  const at = new Float64Array(wide + 1);
  for (let x = 0; x <= wide; x++) at[x] = bucketAt(lines.edges, span.from + ((span.to - span.from) * x) / wide);
  const ms = new Float64Array(order.length);
  /** Red, green and blue of a column's pixels, from its foot. */
  const column = new Float32Array(3 * Math.ceil(ROW_MAX * ratio));
  const cover = (state: number, pixel: number, part: number) => {
    const from = 3 * state;
    const to = 3 * pixel;
    column[to] = (column[to] as number) + part * (colors[from] as number);
    column[to + 1] = (column[to + 1] as number) + part * (colors[from + 1] as number);
    column[to + 2] = (column[to + 2] as number) + part * (colors[from + 2] as number);
  };
  for (const [row, y] of visibleRows(drawing, view)) {
    const head = Math.round((y - HEAD) * ratio);
    const foot = Math.round((y - HEAD + row.height - GAP) * ratio);
    const running = drawing.running(row);
    const [first, last] = [Math.max(head, 0), Math.min(foot, high)];
    /** The bucket of the previous column, if it was only one: all columns within a bucket are the same. */
    let before = -1;
    for (let x = 0; x < wide; x++) {
      const [begin, end] = [at[x] as number, at[x + 1] as number];
      const bucket = end <= Math.floor(begin) + 1 ? Math.floor(begin) : -1;
      if (bucket >= 0 && bucket === before) {
        for (let line = first; line < last; line++) pixels[line * wide + x] = pixels[line * wide + x - 1] as number;
        continue;
      }
      before = bucket;
      ms.fill(0);
      between(running, order.length, begin, end, ms);
      column.fill(0, 0, 3 * (foot - head));
      if (!stackStates(ms, order, foot - head, cover)) continue;
      for (let line = first; line < last; line++) {
        const from = 3 * (foot - 1 - line);
        pixels[line * wide + x] = packed(column[from] as number, column[from + 1] as number, column[from + 2] as number);
      }
    }
  }
  context.putImageData(image, left, top);
}

/** A wait is a bar as long as it was, a sample a stroke at the foot of its row. */
function singles(context: CanvasRenderingContext2D, drawing: Drawing, found: Singles, view: View): void {
  const { span } = drawing;
  const x = xOf(span, view);
  context.save();
  context.beginPath();
  context.rect(LEFT, HEAD, view.width - LEFT, view.height - HEAD);
  context.clip();
  for (const [row, y] of visibleRows(drawing, view)) {
    if (row.isRole) continue;
    const place = row.places[0] as number;
    const high = row.height - GAP;
    const [first, last] = singlesIn(found, place, span.from, span.to);
    for (let single = first; single < last; single++) {
      const end = found.end[single] as number;
      const length = found.length[single] as number;
      if (end - length > span.to) continue;
      context.fillStyle = drawing.stateColors[found.state[single] as number] ?? drawing.muted;
      if (length === 0) context.fillRect(x(end) - 0.75, y + high * 0.45, 1.5, high * 0.55);
      else context.fillRect(x(end - length), y, Math.max(1, x(end) - x(end - length)), high);
    }
  }
  context.restore();
}

export function xOf(span: Span, view: Pick<View, 'width'>): (t: number) => number {
  const perSecond = (view.width - LEFT) / (span.to - span.from);
  return (t) => LEFT + (t - span.from) * perSecond;
}

/** Times, and where levels begin. */
function above(context: CanvasRenderingContext2D, drawing: Drawing, view: View): void {
  const { span } = drawing;
  const x = xOf(span, view);
  context.fillStyle = css(drawing.paper);
  context.fillRect(0, 0, view.width, HEAD);
  const marks = ticks(span.to - span.from, Math.max(2, Math.min(10, (view.width - LEFT) / 110)));
  const step = (marks[1] ?? 1) - (marks[0] ?? 0);
  const begin = Math.ceil(span.from / step) * step;
  context.textAlign = 'center';
  for (let t = begin; t <= span.to + step * 1e-6; t += step) {
    context.fillStyle = drawing.grid;
    context.fillRect(Math.round(x(t)), HEAD - 4, 1, 4);
    context.fillStyle = drawing.muted;
    if (x(t) > LEFT + 14 && x(t) < view.width - 16) context.fillText(clock(t, step), x(t), HEAD - 11);
  }
  context.textAlign = 'left';
  let free = LEFT;
  for (const level of drawing.levels) {
    const at = x(level.from);
    if (at < LEFT || at > view.width) continue;
    context.fillStyle = drawing.ink;
    context.globalAlpha = 0.55;
    context.fillRect(Math.round(at), 0, 1, view.height);
    context.globalAlpha = 1;
    const width = context.measureText(level.label).width;
    if (at + 4 < free || at + 4 + width > view.width) continue;
    context.fillText(level.label, at + 4, 8);
    free = at + 10 + width;
  }
}

function names(context: CanvasRenderingContext2D, drawing: Drawing, view: View): void {
  context.fillStyle = css(drawing.paper);
  context.fillRect(0, HEAD, LEFT, view.height - HEAD);
  context.textAlign = 'left';
  context.save();
  context.beginPath();
  context.rect(0, HEAD, LEFT - 6, view.height - HEAD);
  context.clip();
  const font = context.font;
  for (const [row, y, position] of visibleRows(drawing, view)) {
    if (position === drawing.focused) {
      context.fillStyle = drawing.grid;
      context.fillRect(0, y, LEFT - 6, row.height - GAP);
    }
    if (!row.isRole && row.height < NAMED) continue;
    const middle = y + (row.height - GAP) / 2 + 0.5;
    const [first, second] = drawing.names(row);
    const isFirst = row.isRole || row.isAlone;
    context.fillStyle = isFirst ? drawing.ink : drawing.muted;
    context.font = isFirst ? `600 ${font}` : font;
    if (row.isRole) triangle(context, 6, middle, row.isOpen);
    const left = isFirst ? 18 : 26;
    context.fillText(first, left, middle);
    const used = context.measureText(first).width;
    context.font = font;
    context.fillStyle = drawing.muted;
    context.fillText(second, left + used + 6, middle);
  }
  context.font = font;
  context.restore();
}

function triangle(context: CanvasRenderingContext2D, x: number, y: number, isOpen: boolean): void {
  context.beginPath();
  if (isOpen) {
    context.moveTo(x - 3, y - 2.5);
    context.lineTo(x + 5, y - 2.5);
    context.lineTo(x + 1, y + 3);
  } else {
    context.moveTo(x - 1.5, y - 4);
    context.lineTo(x + 4, y);
    context.lineTo(x - 1.5, y + 4);
  }
  context.fill();
}

export type Rgb = [number, number, number];

const colorCache = new Map<string, Rgb>();

/** Of any colour that CSS knows. */
export function rgb(color: string): Rgb {
  const found = colorCache.get(color) ?? read(color);
  colorCache.set(color, found);
  return found;
}

function read(color: string): Rgb {
  const probe = new OffscreenCanvas(1, 1).getContext('2d');
  if (!probe) return [128, 128, 128];
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data as unknown as Rgb;
  return [r, g, b];
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

function mixColors(color: Rgb, other: Rgb, part: number): Rgb {
  return color.map((channel, at) => Math.round(channel * part + (other[at] as number) * (1 - part))) as Rgb;
}

/** As image data hold it on little-endian machines, which all that have a browser are. */
function packed(r: number, g: number, b: number): number {
  return ((255 << 24) | ((b + 0.5) << 16) | ((g + 0.5) << 8) | (r + 0.5)) >>> 0;
}
