/** Reads what `crates/serve/src/encode.rs` writes: a JSON head and the columns after it. Pure. */

import type { Column } from '../data/model.ts';
import type { LinesHead } from './generated.ts';

export interface ServedLines {
  lines: { number: number | null; column: Column }[];
  /** The number of less busy lines that are left out. */
  left: number;
}

export function linesIn(buffer: ArrayBuffer): ServedLines {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as LinesHead;
  let at = 4 + length;
  const next = (count: number) => {
    const column = new Float64Array(buffer, at, count);
    at += count * 8;
    return column;
  };
  const lines = head.lines.map(({ number, count, band }) => {
    const [t, v] = [next(count), next(count)];
    const column: Column = band ? { t, v, band: { min: next(count), q1: next(count), q3: next(count), max: next(count) } } : { t, v };
    return { number, column };
  });
  return { lines, left: head.left };
}
