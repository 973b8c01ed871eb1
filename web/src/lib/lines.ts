/** Time by line of the sources, as `whyso source` has it. Pure. */

import type { SourceTexts } from '../data/model.ts';
import { functionTimes, nodeTimes } from './calls.ts';
import { callTree, type CallTree } from './flame.ts';

/** Places of files without a line: the build does not have it, or it was left out to keep the page small. */
export const NOT_KNOWN = -1;
export const LEFT_OUT = -2;

/** The tree of calls once more, each with the line that it was at; the names of its nodes are places of lines. */
export interface Lines {
  tree: CallTree;
  /** By line: the place of its function's name, of its file, and its number. */
  name: Uint32Array;
  file: Int32Array;
  line: Uint32Array;
}

export function linesOf([depths, places, name, file, line]: [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]): Lines {
  return { tree: callTree(depths, places), name: new Uint32Array(name), file: new Int32Array(file), line: new Uint32Array(line) };
}

/** By metric, in microseconds: of samples whose innermost function was at the line, and of those that have the line anywhere in their stacks. */
export interface LineTimes {
  exclusive: number[];
  inclusive: number[];
}

/** A function's lines. */
export interface Source {
  /** By file its lines by number, ascending. */
  files: Map<number, Map<number, LineTimes>>;
  /** Where the build has no line. */
  notKnown: LineTimes;
  /** Where lines were left out to keep the page small. */
  leftOut: LineTimes;
}

/** The lines of a function, by the place of its name; `exclusive`: metric by metric the time by node of the tree of lines. */
export function sourceOf(lines: Lines, exclusive: Float64Array[], name: number): Source {
  const metrics = exclusive.length;
  const times = exclusive.map((ns) => functionTimes(lines.tree, nodeTimes(lines.tree, ns), lines.name.length));
  const none = (): LineTimes => ({ exclusive: new Array<number>(metrics).fill(0), inclusive: new Array<number>(metrics).fill(0) });
  const source: Source = { files: new Map(), notKnown: none(), leftOut: none() };
  const found: [number, number, LineTimes][] = [];
  for (let place = 1; place < lines.name.length; place++) {
    if (lines.name[place] !== name || !times.some((time) => (time.inclusive[place] as number) > 0)) continue;
    const of = { exclusive: times.map((time) => time.exclusive[place] as number), inclusive: times.map((time) => time.inclusive[place] as number) };
    const file = lines.file[place] as number;
    if (file === NOT_KNOWN) source.notKnown = of;
    else if (file === LEFT_OUT) source.leftOut = of;
    else found.push([file, lines.line[place] as number, of]);
  }
  found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [file, line, of] of found) {
    const byLine = source.files.get(file) ?? new Map<number, LineTimes>();
    source.files.set(file, byLine.set(line, of));
  }
  return source;
}

/** A line that is shown; `follows`: the one before it in the file is shown, too. */
export interface ShownLine {
  line: number;
  text: string | null;
  times: LineTimes | null;
  follows: boolean;
}

/** The lines with time, and those around them whose text is there. */
export function shownLines(withTime: Map<number, LineTimes>, text: SourceTexts['files'][number] | undefined, around: number): ShownLine[] {
  const texts = new Map(text?.lines ?? []);
  const numbers = new Set(withTime.keys());
  for (const line of withTime.keys()) {
    for (let near = line - around; near <= line + around; near++) if (texts.has(near)) numbers.add(near);
  }
  return [...numbers]
    .sort((a, b) => a - b)
    .map((line) => ({ line, text: texts.get(line) ?? null, times: withTime.get(line) ?? null, follows: numbers.has(line - 1) }));
}

/** Lines with this part of a metric's greatest line at least are marked. */
const HOT_SHARE = 0.75;

/** Whether a line is among those with the most time of some metric, of its own or with what it called. */
export function hotLines(source: Source): (times: LineTimes) => boolean {
  const all = [...source.files.values()].flatMap((file) => [...file.values()]);
  const most = (of: (times: LineTimes) => number[]) =>
    all.reduce<number[]>((greatest, times) => of(times).map((us, at) => Math.max(us, greatest[at] ?? 0)), []);
  const [exclusive, inclusive] = [most((times) => times.exclusive), most((times) => times.inclusive)];
  const isHot = (us: number, most_: number | undefined) => us > 0 && us >= HOT_SHARE * (most_ ?? 0);
  return (times) => times.exclusive.some((us, at) => isHot(us, exclusive[at])) || times.inclusive.some((us, at) => isHot(us, inclusive[at]));
}
