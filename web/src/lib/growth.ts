/** The growth table's rows: counters that explain found to have the same meaning and values share one. Pure. */

import type { Growth } from '../data/model.ts';

/** Each row begins with the counter that the others of it are the same as; rows are in the order of these counters. */
export function growthRows(growth: Growth[]): Growth[][] {
  const rows = growth.map((row) => [row]);
  for (const metric of growth) {
    if (metric.same_as !== undefined) rows[metric.same_as]?.push(metric);
  }
  return rows.filter(([first]) => first?.same_as === undefined);
}
