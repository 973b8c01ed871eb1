/** The growth table's rows: counters with the same meaning and values share one. Pure. */

import type { Growth } from '../data/model.ts';

/** Values this near are the same count, read at another place at another moment. */
const SAME = 0.03;

/** Counters of one meaning with the same values, such as those of SHOW STATUS and of InnoDB's own table, the first one's order. */
export function growthRows(growth: Growth[]): Growth[][] {
  const rows: Growth[][] = [];
  for (const one of growth) {
    const row = rows.find(([first]) => first !== undefined && saysTheSame(first, one));
    if (row) row.push(one);
    else rows.push([one]);
  }
  return rows;
}

function saysTheSame(a: Growth, b: Growth): boolean {
  return a.meaning !== '' && a.meaning === b.meaning && a.unit === b.unit
    && isNear(a.best_per_transaction, b.best_per_transaction) && isNear(a.last_per_transaction, b.last_per_transaction);
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= SAME * Math.max(Math.abs(a), Math.abs(b));
}
