import type { Level } from '../data/model.ts';

/** What a table of kinds (of statements, of transactions) can show of each. */
export interface KindQuantity<One> {
  name: string;
  /** What the columns hold, with its unit. */
  head: string;
  why: string;
  /** NaN where there is nothing to show. */
  of: (one: One, level: Level) => number;
}
