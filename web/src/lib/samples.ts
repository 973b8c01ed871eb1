/** Samples of stacks by thread, stretch of time and statement: and what a filter selects of them. Pure. */

import type { SamplesHead } from '../data/model.ts';
import { asksForWork, hasThread, hasWork, type Filter } from './filter.ts';
import { OBSERVER } from './flamewords.ts';

export interface Samples {
  head: SamplesHead;
  /** By whom: places in the head, −1 if it is not known or not separated. */
  role: Int32Array;
  thread: Int32Array;
  connection: Float64Array;
  statement: Int32Array;
  /** Row by row. Rows of one metric lie together, in the order of metrics. */
  metric: Uint8Array;
  whose: Uint32Array;
  stretch: Uint32Array;
  node: Uint32Array;
  /** Its node in the tree of lines; empty if lines are not separated. */
  lineNode: Uint32Array;
  us: Float64Array;
  /** Roots of their variances. */
  spread: Float64Array;
  count: Float64Array;
}

const places = (column: Float64Array | undefined) => Int32Array.from(column ?? [], (place) => (Number.isNaN(place) ? -1 : place));

/** `nodeOf`: by node of the tree of lines its node in that of calls, if rows are separated by line. */
export function samplesOf(head: SamplesHead, columns: Float64Array[], nodeOf: Float64Array | null = null): Samples {
  const column = (slot: number) => columns[slot] ?? new Float64Array(0);
  const nodes = new Uint32Array(column(7));
  return {
    head,
    role: places(columns[0]),
    thread: places(columns[1]),
    connection: column(2),
    statement: places(columns[3]),
    metric: new Uint8Array(column(4)),
    whose: new Uint32Array(column(5)),
    stretch: new Uint32Array(column(6)),
    node: nodeOf ? nodes.map((line) => nodeOf[line] ?? 0) : nodes,
    lineNode: nodeOf ? nodes : new Uint32Array(0),
    us: column(8),
    spread: column(9),
    count: column(10),
  };
}

/**
 * Marks each owner of samples: 0 does not match, 1 is one of the filter's threads, 2 has a known connection and statement, 3 matches.
 * The observer's samples match only with `withObserver`, or if the filter names their role.
 */
export function marksOf(samples: Samples, filter: Filter, withObserver = false): Uint8Array {
  const { roles, threads, statements } = samples.head;
  return Uint8Array.from(samples.role, (role, whose) => {
    const [tid = -1, name = ''] = threads[samples.thread[whose] as number] ?? [];
    const isObserver = roles[role] === OBSERVER;
    if (isObserver && !withObserver && filter.role !== OBSERVER) return 0;
    // The role does not matter for the observer's time: it was taken from threads of all roles.
    const threadFilter = isObserver && withObserver ? { ...filter, role: '' } : filter;
    if (!hasThread(threadFilter, { tid, name, role: roles[role] ?? '' })) return 0;
    if (!asksForWork(filter)) return 3;
    const number = samples.connection[whose] as number;
    const connection = Number.isNaN(number) ? null : number;
    const statement = statements[samples.statement[whose] as number] ?? '';
    if (hasWork(filter, { connection, statement })) return 3;
    const isKnown = (filter.connections.size === 0 || connection !== null) && (filter.statement === '' || statement !== '');
    return isKnown ? 2 : 1;
  });
}

/** The time of one metric that a filter selects in some stretches. */
export interface FilteredTime {
  /** By node, in microseconds. */
  exclusive: Float64Array;
  half_us: number;
  samples: number;
  /** The share of the matching time whose connection and statement are known; null if the filter has neither. */
  knownShare: number | null;
}

/** Two standard errors to each side hold 95 %. */
const STANDARD_ERRORS = 1.96;

/** `nodeOf`: by row its node, of either tree. */
export function filteredTime(
  samples: Samples,
  nodes: number,
  metric: number,
  [first, after]: readonly [number, number],
  marks: Uint8Array,
  asksWork: boolean,
  nodeOf: Uint32Array = samples.node,
): FilteredTime {
  const exclusive = new Float64Array(nodes);
  let [variance, count, all, known_us] = [0, 0, 0, 0];
  const [begin, end] = rowsOf(samples, metric);
  for (let row = begin; row < end; row++) {
    const stretch = samples.stretch[row] as number;
    if (stretch < first || stretch >= after) continue;
    const mark = marks[samples.whose[row] as number] as number;
    if (mark === 0) continue;
    const us = samples.us[row] as number;
    all += us;
    if (mark > 1) known_us += us;
    if (mark < 3) continue;
    const node = nodeOf[row] as number;
    exclusive[node] = (exclusive[node] as number) + us;
    variance += (samples.spread[row] as number) ** 2;
    count += samples.count[row] as number;
  }
  return { exclusive, half_us: STANDARD_ERRORS * Math.sqrt(variance), samples: count, knownShare: asksWork ? (all > 0 ? known_us / all : 0) : null };
}

/** The rows of a metric: from the first one on, before the second. */
function rowsOf({ metric: column }: Samples, metric: number): [number, number] {
  const first = (of: number) => {
    let [low, high] = [0, column.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((column[middle] as number) < of) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [first(metric), first(metric + 1)];
}

/** The stretches of this run that lie around a window, as places and as seconds since the page's zero; null where none does. */
export function stretchesAround(head: SamplesHead, originNs: number, from: number, to: number): { places: [number, number]; from: number; to: number } | null {
  const edges = head.edges_ns.map((ns) => (ns - originNs) / 1e9);
  // A brush ends between two nanoseconds.
  const slack = 1e-3;
  const begin = Math.max(0, edges.findLastIndex((edge) => edge <= from + slack));
  const found = edges.findIndex((edge) => edge >= to - slack);
  const end = found < 0 ? edges.length - 1 : found;
  return end > begin ? { places: [begin, end], from: edges[begin] as number, to: edges[end] as number } : null;
}

/** The functions with the most exclusive time in one metric, step by step. The first ones are named, all others are summed. */
export interface OverTime {
  /** Middle of each step, in seconds since the page's zero. */
  t: Float64Array;
  /** Places of names, −1 of all others; by step: CPUs. */
  functions: { name: number; v: Float64Array }[];
}

export function overTime(samples: Samples, names: Uint32Array, metric: number, marks: Uint8Array, originNs: number, most: number): OverTime {
  const { edges_ns, step_s } = samples.head;
  const stepOf = edges_ns.slice(0, -1).map((edge) => Math.floor((edge - originNs) / 1e9 / step_s + 1e-9));
  const [first, last] = [stepOf[0] ?? 0, stepOf.at(-1) ?? -1];
  const steps = last - first + 1;
  const byName = new Map<number, Float64Array>();
  const sums = new Map<number, number>();
  const [begin, end] = rowsOf(samples, metric);
  for (let row = begin; row < end; row++) {
    const step = stepOf[samples.stretch[row] as number];
    if (step === undefined || (marks[samples.whose[row] as number] as number) < 3) continue;
    const name = names[samples.node[row] as number] as number;
    let of = byName.get(name);
    if (!of) byName.set(name, (of = new Float64Array(steps)));
    const us = samples.us[row] as number;
    of[step - first] = (of[step - first] as number) + us / 1e6 / step_s;
    sums.set(name, (sums.get(name) ?? 0) + us);
  }
  const order = [...sums.keys()].sort((a, b) => (sums.get(b) ?? 0) - (sums.get(a) ?? 0) || a - b);
  const functions = order.slice(0, most).map((name) => ({ name, v: byName.get(name) as Float64Array }));
  const others = new Float64Array(steps);
  for (const name of order.slice(most)) byName.get(name)?.forEach((value, step) => (others[step] = (others[step] as number) + value));
  return { t: Float64Array.from({ length: steps }, (_, step) => (first + step + 0.5) * step_s), functions: [...functions, { name: -1, v: others }] };
}
