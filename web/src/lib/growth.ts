/** The growth table's rows: counters that explain found to have the same meaning and values share one. Pure. */

import type { Growth } from '../data/model.ts';

/** Each row begins with the counter that the others of it are the same as; rows are in the order of these counters. */
export function growthRows(growth: Growth[]): Growth[][] {
  const rows = growth.map((one) => [one]);
  for (const one of growth) {
    if (one.same_as !== undefined) rows[one.same_as]?.push(one);
  }
  return rows.filter(([first]) => first?.same_as === undefined);
}
