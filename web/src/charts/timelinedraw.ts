/** Draws threads over time on a canvas: rows of stacked states, single waits and samples, times, levels and names. */

import { clock } from '../lib/format.ts';
import { ticks } from '../lib/scale.ts';
import { between, bucketAt, Shares, singlesIn, type Lines, type Row, type Running, type Singles, type Span } from '../lib/timeline.ts';

/** Room for names on the left, and for times and levels above the rows. */
export const LEFT = 168;
export const HEAD = 34;
const GAP = 1;
const FONT_PX = 11;
/** Rows of threads carry names from this height on. */
const NAMED = 11;
/** Single waits and samples are drawn where a pixel is at most so many seconds. */
const SINGLES_PX_S = 0.005;
/** How much of the states is seen beneath them. */
const BENEATH = 0.38;

export interface LevelMark {
  from: number;
  label: string;
}

export interface Drawing {
  lines: Lines;
  rows: Row[];
  running: (row: Row) => Running;
  /** Read where they are needed. */
  singles: Singles | null;
  span: Span;
  levels: LevelMark[];
  /** By place in the lines' states: red, green, blue. */
  colors: [number, number, number][];
  /** The order in which states are stacked, from the foot. */
  order: number[];
  names: (row: Row) => string;
  ink: string;
  muted: string;
  grid: string;
  paper: string;
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
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext('2d');
  if (!context || wide === 0 || high === 0) return;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = drawing.paper;
  context.fillRect(0, 0, wide, high);
  states(context, drawing, view, ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = `${FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = 'middle';
  if (drawing.singles && showsSingles(drawing.span, view.width)) singles(context, drawing, drawing.singles, view);
  above(context, drawing, view);
  names(context, drawing, view);
}

/** The rows that are seen, with their positions. */
function* seen(drawing: Drawing, view: View): Generator<[Row, number, number]> {
  for (const [position, row] of drawing.rows.entries()) {
    const y = HEAD + row.top - view.top;
    if (y + row.height > HEAD && y < view.height) yield [row, y, position];
  }
}

/** Of each row the states' shares of its threads' time, a column a pixel of the screen: every column is full where a thread was there. */
function states(context: CanvasRenderingContext2D, drawing: Drawing, view: View, ratio: number): void {
  const { lines, span, order } = drawing;
  const left = Math.round(LEFT * ratio);
  const wide = Math.round(view.width * ratio) - left;
  const top = Math.round(HEAD * ratio);
  const high = Math.round(view.height * ratio) - top;
  if (wide <= 0 || high <= 0) return;
  const image = context.getImageData(left, top, wide, high);
  const pixels = new Uint32Array(image.data.buffer);
  const isFaint = drawing.singles !== null && showsSingles(span, view.width);
  const paper = rgb(drawing.paper);
  const words = drawing.colors.map((color) => packed(isFaint ? mixed(color, paper, BENEATH) : color));
  const at = new Float64Array(wide + 1);
  for (let x = 0; x <= wide; x++) at[x] = bucketAt(lines.edges, span.from + ((span.to - span.from) * x) / wide);
  const ms = new Float64Array(order.length);
  const sorted = new Float64Array(order.length);
  for (const [row, y] of seen(drawing, view)) {
    const from = Math.round((y - HEAD) * ratio);
    const to = Math.round((y - HEAD + row.height - GAP) * ratio);
    const shares = new Shares(order.length, to - from);
    const running = drawing.running(row);
    for (let x = 0; x < wide; x++) {
      ms.fill(0);
      between(running, order.length, at[x] as number, at[x + 1] as number, ms);
      for (let place = 0; place < order.length; place++) sorted[place] = ms[order[place] as number] as number;
      if (!shares.next(sorted)) continue;
      let foot = to;
      for (let place = 0; place < order.length; place++) {
        const head = foot - (shares.pixels[place] as number);
        const word = words[order[place] as number] as number;
        for (let line = Math.min(foot, high) - 1; line >= Math.max(head, 0); line--) pixels[line * wide + x] = word;
        foot = head;
      }
    }
  }
  context.putImageData(image, left, top);
}

/** A wait is a bar as long as it was, a sample a stroke at the foot of its row. */
function singles(context: CanvasRenderingContext2D, drawing: Drawing, found: Singles, view: View): void {
  const { lines, span } = drawing;
  const x = xOf(span, view);
  context.save();
  context.beginPath();
  context.rect(LEFT, HEAD, view.width - LEFT, view.height - HEAD);
  context.clip();
  const style = (state: number) => `rgb(${(drawing.colors[lines.states.indexOf(state)] ?? [128, 128, 128]).join(' ')})`;
  const styles = new Map([...new Set(found.state)].map((state) => [state, style(state)]));
  for (const [row, y] of seen(drawing, view)) {
    if (row.isRole) continue;
    const place = row.places[0] as number;
    const high = row.height - GAP;
    const [first, last] = singlesIn(found, place, span.from, span.to);
    for (let one = first; one < last; one++) {
      const end = found.end[one] as number;
      const length = found.length[one] as number;
      if (end - length > span.to) continue;
      context.fillStyle = styles.get(found.state[one] as number) ?? drawing.muted;
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
  context.fillStyle = drawing.paper;
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
  context.fillStyle = drawing.paper;
  context.fillRect(0, HEAD, LEFT, view.height - HEAD);
  context.textAlign = 'left';
  context.save();
  context.beginPath();
  context.rect(0, HEAD, LEFT - 6, view.height - HEAD);
  context.clip();
  for (const [row, y, position] of seen(drawing, view)) {
    if (position === drawing.focused) {
      context.fillStyle = drawing.grid;
      context.fillRect(0, y, LEFT - 6, row.height - GAP);
    }
    if (!row.isRole && row.height < NAMED) continue;
    const middle = y + (row.height - GAP) / 2 + 0.5;
    context.fillStyle = row.isRole ? drawing.ink : drawing.muted;
    context.font = context.font.replace(/^(600 )?/, row.isRole ? '600 ' : '');
    if (row.isRole) triangle(context, 6, middle, row.isOpen);
    context.fillText(drawing.names(row), row.isRole ? 18 : 24, middle);
  }
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

/** Of any colour that CSS knows. */
export function rgb(color: string): Rgb {
  const probe = new OffscreenCanvas(1, 1).getContext('2d');
  if (!probe) return [128, 128, 128];
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data as unknown as Rgb;
  return [r, g, b];
}

function mixed(color: Rgb, other: Rgb, part: number): Rgb {
  return color.map((one, at) => Math.round(one * part + (other[at] as number) * (1 - part))) as Rgb;
}

/** As image data hold it on little-endian machines, which all that have a browser are. */
function packed([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
