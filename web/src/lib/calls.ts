/** Functions of a merged call tree: the time in each, who called it, and what it called, as `whyso functions`, `callers` and `callees` have them. Pure. */

import { inclusiveOf, type CallTree } from './flame.ts';

/** One metric: by node, exclusive and inclusive. */
export interface NodeTimes {
  exclusive: Float64Array;
  inclusive: Float64Array;
}

export function nodeTimes(tree: CallTree, exclusive: Float64Array): NodeTimes {
  return { exclusive, inclusive: inclusiveOf(tree, exclusive) };
}

/** One metric: by place of the name, exclusive and inclusive; place 0 is all. Where a function called itself, its time counts once. */
export function functionTimes(tree: CallTree, times: NodeTimes, names: number): NodeTimes {
  const sums = { exclusive: new Float64Array(names), inclusive: new Float64Array(names) };
  /** How often a name occurs on the way from node 0 to the current node. */
  const open = new Uint32Array(names);
  const path: number[] = [];
  for (let node = 0; node < tree.depth.length; node++) {
    while (path.length > (tree.depth[node] as number)) add(open, tree.name[path.pop() as number] as number, -1);
    const name = tree.name[node] as number;
    add(sums.exclusive, name, times.exclusive[node] as number);
    if (open[name] === 0) add(sums.inclusive, name, times.inclusive[node] as number);
    add(open, name, 1);
    path.push(node);
  }
  sums.exclusive[0] = sums.inclusive[0] as number;
  return sums;
}

/** A function's time by caller and by callee, by place of the name. */
export interface Relatives {
  /** They add up to its inclusive time; place 0 called it where it is the outermost. */
  callers: Map<number, number>;
  /** With its exclusive time they add up to its inclusive time. */
  callees: Map<number, number>;
}

/** Where a function called itself, its callers are those of the outermost call, and its callees those of the innermost. */
export function relativesOf(tree: CallTree, inclusive: Float64Array, name: number): Relatives {
  const relatives: Relatives = { callers: new Map(), callees: new Map() };
  const count = tree.depth.length;
  /** By node: the time within it of further calls of the function, the outermost of them. */
  const within = new Float64Array(count);
  for (let node = count - 1; node > 0; node--) {
    if (tree.name[node] === name) within[node] = inclusive[node] as number;
    add(within, tree.parent[node] as number, within[node] as number);
  }
  for (let node = 1; node < count; node++) {
    const parent = tree.parent[node] as number;
    if (tree.name[parent] === name) addTo(relatives.callees, tree.name[node] as number, (inclusive[node] as number) - (within[node] as number));
  }
  for (let node = 1; node < count; ) {
    const isOutermost = tree.name[node] === name;
    if (isOutermost) addTo(relatives.callers, tree.name[tree.parent[node] as number] as number, inclusive[node] as number);
    node = isOutermost ? (tree.end[node] as number) : node + 1;
  }
  return relatives;
}

function add(times: Float64Array | Uint32Array, at: number, time: number) {
  times[at] = (times[at] as number) + time;
}

function addTo(times: Map<number, number>, name: number, time: number) {
  if (time > 0) times.set(name, (times.get(name) ?? 0) + time);
}
