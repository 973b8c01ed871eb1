/** Draws a flame graph on a canvas: frames with their labels, and nothing else. */

import { label, type CallTree, type Layout } from '../lib/flame.ts';
import { chartFont, sizeCanvas } from './style.ts';

export const ROW = 17;
const GAP = 1;
/** Narrower frames carry no label. */
const LABEL_MIN = 26;
const PAD = 4;

export interface Drawing {
  layout: Layout;
  tree: CallTree;
  /** By name: what is written on its frames. */
  names: string[];
  /** The colour of a node. */
  fill: (node: number) => string;
  ink: string;
  paper: string;
  /** The number of first frames that are drawn faintly. They are the callers of the zoomed frame, and wider than what is shown. */
  faint: number;
}

/** The visible part of the graph, in CSS pixels. The outermost row is at the foot. */
export interface View {
  width: number;
  height: number;
  /** Of the whole graph. */
  total: number;
  /** The distance from the graph's top down to the view's top. */
  top: number;
}

export function draw(canvas: HTMLCanvasElement, drawing: Drawing, view: View): void {
  const surface = sizeCanvas(canvas, view.width, view.height);
  if (!surface) return;
  const { context, ratio } = surface;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = drawing.paper;
  context.fillRect(0, 0, view.width, view.height);
  context.font = chartFont();
  context.textBaseline = 'middle';
  const perCharacter = context.measureText('handle_one_connection').width / 21;

  const { layout, tree } = drawing;
  for (let frame = 0; frame < layout.count; frame++) {
    const node = layout.node[frame] as number;
    const y = rowTop(tree.depth[node] as number, view);
    if (y + ROW < 0 || y > view.height) continue;
    const left = layout.left[frame] as number;
    const width = layout.width[frame] as number;
    context.globalAlpha = frame < drawing.faint ? 0.55 : 1;
    context.fillStyle = drawing.fill(node);
    context.fillRect(left, y, width > 3 ? width - GAP : width, ROW - GAP);
    if (width < LABEL_MIN) continue;
    const text = label(drawing.names[tree.name[node] as number] ?? '', Math.floor((width - 2 * PAD) / perCharacter));
    if (text === '') continue;
    context.fillStyle = drawing.ink;
    context.fillText(text, left + PAD, y + ROW / 2, width - 2 * PAD + 2);
  }
}

/** The top of a row in the view. */
export function rowTop(depth: number, view: View): number {
  return view.total - (depth + 1) * ROW - view.top;
}

/** The row at a place in the view. */
export function rowAt(y: number, view: View): number {
  return Math.floor((view.total - view.top - y) / ROW);
}
