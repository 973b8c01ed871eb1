/** The nested time budget of a request over several programs: where each line's bar lies. Pure. */

import type { TierLine, TierTime } from '../data/model.ts';
import { PARTS } from './budget.ts';

/** Of a line that is no part of a program's own: the whole, the wait for a server behind, and what is too small for a line. */
const PLAIN_COLOR = '#9aa4ac';

export interface TierRow {
  line: TierLine;
  /** Where its bar begins and ends, as shares of the whole. */
  from: number;
  to: number;
  color: string;
}

/** Of the table of its lines. */
export function tierTitle(tier: TierTime): string {
  return tier.page_ms === null ? `Where the time of a request to ${tier.name} went` : `Where the time went that users of ${tier.name} waited for`;
}

/** A row for each line. Lines of the same parent follow each other within its bar. */
export function tierRows(lines: readonly TierLine[]): TierRow[] {
  /** By depth: where the next line of that depth begins. */
  const next: number[] = [0];
  return lines.map((line) => {
    const from = next[line.depth] ?? 0;
    // What is less than nothing has no bar.
    const to = from + Math.max(0, line.share);
    next[line.depth] = to;
    next[line.depth + 1] = from;
    // Where others ask a server too, what it did can be more than the wait for it: bars end with the whole.
    return { line, from: Math.min(1, from), to: Math.min(1, to), color: line.part === null ? PLAIN_COLOR : PARTS[line.part].color };
  });
}
