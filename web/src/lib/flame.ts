/** Merged call trees: who called whom, how wide each is drawn, and what changed between two levels. Pure. */

/** Nodes in preorder: what a node called stands right after it. Node 0 stands for all calls. */
export interface CallTree {
  depth: Uint16Array;
  /** Place of its function in the head's names. */
  name: Uint32Array;
  /** −1 of node 0. */
  parent: Int32Array;
  /** The first node after it that it did not call, directly or not. */
  end: Uint32Array;
}

export function callTree(depths: Float64Array, names: Float64Array): CallTree {
  const count = depths.length;
  const tree = { depth: new Uint16Array(depths), name: new Uint32Array(names), parent: new Int32Array(count), end: new Uint32Array(count) };
  /** The nodes from node 0 down to the one before. */
  const path: number[] = [];
  for (let node = 0; node < count; node++) {
    const depth = tree.depth[node] as number;
    while (path.length > depth) tree.end[path.pop() as number] = node;
    tree.parent[node] = path.at(-1) ?? -1;
    path.push(node);
  }
  for (const node of path) tree.end[node] = count;
  return tree;
}

/** The columns added up, node by node. */
export function sumColumns(columns: Float64Array[], count: number): Float64Array {
  const sum = new Float64Array(count);
  for (const column of columns) {
    for (let node = 0; node < count; node++) sum[node] = (sum[node] as number) + (column[node] as number);
  }
  return sum;
}

/** Each node's time with that of all that it called. */
export function inclusiveOf(tree: CallTree, exclusive: Float64Array): Float64Array {
  const inclusive = exclusive.slice();
  for (let node = inclusive.length - 1; node > 0; node--) {
    const parent = tree.parent[node] as number;
    inclusive[parent] = (inclusive[parent] as number) + (inclusive[node] as number);
  }
  return inclusive;
}

/** Frames are drawn from this width on, in pixels of the page. */
export const WIDTH_MIN = 0.5;

/** What is drawn, in preorder: frame by frame its node, and where it lies from left to right in pixels. Its row is its node's depth. */
export interface Layout {
  count: number;
  node: Uint32Array;
  left: Float32Array;
  width: Float32Array;
  rows: number;
}

/** A node over the whole width, with those above it as wide, and what it called by its share of the time. */
export function layout(tree: CallTree, inclusive: Float64Array, zoomed: number, width: number): Layout {
  const size = tree.depth.length;
  const frames: Layout = { count: 0, node: new Uint32Array(size), left: new Float32Array(size), width: new Float32Array(size), rows: 0 };
  const total = inclusive[zoomed] ?? 0;
  if (total <= 0) return frames;
  const add = (node: number, left: number, wide: number) => {
    frames.node[frames.count] = node;
    frames.left[frames.count] = left;
    frames.width[frames.count] = wide;
    frames.count++;
    frames.rows = Math.max(frames.rows, (tree.depth[node] as number) + 1);
  };
  for (const node of pathTo(tree, zoomed).slice(0, -1)) add(node, 0, width);
  /** By depth: where the next node begins. */
  const next: number[] = [];
  next[tree.depth[zoomed] as number] = 0;
  const end = tree.end[zoomed] as number;
  for (let node = zoomed; node < end; ) {
    const depth = tree.depth[node] as number;
    const left = next[depth] as number;
    const wide = (width * (inclusive[node] as number)) / total;
    next[depth] = left + wide;
    if (wide < WIDTH_MIN) {
      node = tree.end[node] as number;
      continue;
    }
    next[depth + 1] = left;
    add(node, left, wide);
    node++;
  }
  return frames;
}

/** From node 0 to a node. */
export function pathTo(tree: CallTree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = tree.parent[at] as number) path.unshift(at);
  return path;
}

/** The frame at a place: its position in the layout, −1 where there is none. */
export function frameAt(frames: Layout, tree: CallTree, row: number, x: number): number {
  for (let frame = 0; frame < frames.count; frame++) {
    const left = frames.left[frame] as number;
    if (tree.depth[frames.node[frame] as number] === row && x >= left && x < left + (frames.width[frame] as number)) return frame;
  }
  return -1;
}

export function frameOf(frames: Layout, node: number): number {
  for (let frame = 0; frame < frames.count; frame++) if (frames.node[frame] === node) return frame;
  return -1;
}

export type Move = 'caller' | 'callee' | 'left' | 'right';

/** Returns the node of a step: the caller, the widest callee, or the neighbour in the row; itself if there is none. */
export function step(frames: Layout, tree: CallTree, node: number, move: Move): number {
  if (move === 'caller') return Math.max(tree.parent[node] ?? 0, 0);
  let best = node;
  let widest = 0;
  let isPast = false;
  for (let frame = 0; frame < frames.count; frame++) {
    const other = frames.node[frame] as number;
    if (move === 'callee') {
      if (tree.parent[other] === node && (frames.width[frame] as number) > widest) {
        best = other;
        widest = frames.width[frame] as number;
      }
      continue;
    }
    if (tree.depth[other] !== tree.depth[node]) continue;
    if (other === node) isPast = true;
    else if (move === 'left' && !isPast) best = other;
    else if (move === 'right' && isPast) return other;
  }
  return best;
}

/** What part of all time is that of functions that match, each with all that it called; a match within a match counts once. */
export function shareOf(tree: CallTree, inclusive: Float64Array, matches: Uint8Array): number {
  const total = inclusive[0] ?? 0;
  if (total <= 0) return 0;
  let time = 0;
  for (let node = 0; node < tree.depth.length; ) {
    const isMatch = matches[tree.name[node] as number] === 1;
    if (isMatch) time += inclusive[node] as number;
    node = isMatch ? (tree.end[node] as number) : node + 1;
  }
  return time / total;
}

/** Which names hold a text, in any case; none where there is no text. */
export function matchNames(names: string[], text: string): Uint8Array {
  const part = text.trim().toLowerCase();
  if (part === '') return new Uint8Array(names.length);
  return Uint8Array.from(names, (name) => (name.toLowerCase().includes(part) ? 1 : 0));
}

/** One side of a comparison. */
export interface Side {
  /** Of each node: exclusive or inclusive. */
  times: Float64Array;
  /** Of the whole tree. */
  total: number;
  /** What times are divided by, such as transactions. */
  by: number;
  /** Half of the 95 % interval of the total. */
  half: number;
}

/** By how much each node's time is more here than there, and half of the 95 % interval of that. */
export interface Difference {
  value: Float64Array;
  half: Float64Array;
}

/** Calculates the difference. It assumes that a node's share of the variance equals its share of the total: all samples have the same weight. */
export function difference(here: Side, there: Side): Difference {
  const [scaledHere, scaledThere] = [scaled(here), scaled(there)];
  const value = here.times.map((_, node) => scaledHere.time(node) - scaledThere.time(node));
  return { value, half: value.map((_, node) => Math.sqrt(scaledHere.variance(node) + scaledThere.variance(node))) };
}

function scaled({ times, total, by, half }: Side): { time: (node: number) => number; variance: (node: number) => number } {
  const time = (node: number) => (by > 0 ? (times[node] ?? 0) / by : 0);
  return { time, variance: (node) => (by > 0 && total > 0 ? ((half / by) ** 2 * (times[node] ?? 0)) / total : 0) };
}

/** Returns the difference of a node if it is outside its interval; else 0. */
export function significantDifference({ value, half }: Difference, node: number): number {
  const difference = value[node] ?? 0;
  return Math.abs(difference) > (half[node] ?? 0) ? difference : 0;
}

/** From −1 to 1 by the square root of the part of the most, so that small differences are seen, too. */
export function shade(value: number, most: number): number {
  return most > 0 ? Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / most)) : 0;
}

export type ModuleKind = 'server' | 'libc' | 'library' | 'kernel' | 'unknown';

export const KIND_NAME: Record<ModuleKind, string> = {
  server: 'server',
  libc: 'C library',
  library: 'other libraries and plugins',
  kernel: 'kernel',
  unknown: 'not known',
};

export function kindOf(module: string): ModuleKind {
  if (module === '') return 'unknown';
  if (module === '[vdso]') return 'libc';
  if (module.startsWith('[')) return 'kernel';
  if (/^(libc|libpthread|libm|librt|libdl|ld-linux)\b/.test(module)) return 'libc';
  return module.includes('.so') ? 'library' : 'server';
}

/** Shortens a name to this many characters: without its parameters, then cut; empty if nothing fits. */
export function label(name: string, characters: number): string {
  if (name.length <= characters) return name;
  const bracket = name.indexOf('(', 1);
  const bare = bracket > 0 ? name.slice(0, bracket) : name;
  if (bare.length <= characters) return bare;
  return characters < 3 ? '' : `${bare.slice(0, characters - 1)}…`;
}
