/** The table of the commands that clients sent: its columns, and its rows in order. Pure. */

import type { StatementRow, StatementsHead } from '../data/model.ts';

export interface StatementColumn {
  /** What it is called, and what it is of in full. */
  name: string;
  title: string;
  isTime: boolean;
  /** Times in nanoseconds; null where it is known of no command, or there is no such count. */
  of: (row: StatementRow) => number | null;
  /** The number of the row's commands for which it is known. */
  coverage: (row: StatementRow) => number;
  /** Rows add up to the total. */
  isSum: boolean;
}

const METRICS: Record<string, [name: string, title: string]> = {
  response: ['response', 'from when the server had read the command to when its reply was sent'],
  cpu: ['CPU', 'its thread on a CPU'],
  runqueue: ['runqueue', 'its thread ready to run, without a CPU'],
  lock: ['lock', 'its thread waiting for locks'],
  io: ['io', 'its thread reading, writing and syncing files'],
  rows_sent: ['rows sent', 'rows that were sent to clients'],
  rows_examined: ['rows examined', 'rows that were read to find them'],
  rows_affected: ['rows affected', 'rows that were changed'],
  errors: ['errors', 'commands that ended with an error'],
};

export function columnsOf(head: StatementsHead): StatementColumn[] {
  const all = (row: StatementRow) => row.count;
  const plain: StatementColumn[] = [
    { name: 'count', title: 'commands', isTime: false, of: all, coverage: all, isSum: true },
    { name: 'mean', title: 'mean response time', isTime: true, of: (row) => row.mean_ns, coverage: all, isSum: false },
    { name: 'p95', title: 'response time that 95 of 100 did not exceed', isTime: true, of: (row) => row.p95_ns, coverage: all, isSum: false },
    { name: 'max', title: 'longest response time', isTime: true, of: (row) => row.max_ns, coverage: all, isSum: false },
  ];
  const sums = head.metrics.map((metric, at): StatementColumn => {
    const [name, title] = METRICS[metric] ?? [metric, metric];
    return { name, title, isTime: at < head.times, of: (row) => row.sums[at] ?? null, coverage: (row) => row.known[at] ?? 0, isSum: true };
  });
  return [...plain, ...sums];
}

/** Those whose statement or command holds a text, in any case, the most of a column first; where it is not known, last. */
export function rowsBy(rows: StatementRow[], column: StatementColumn, text: string): StatementRow[] {
  const part = text.toLowerCase();
  const found = rows.filter((row) => part === '' || row.statement.toLowerCase().includes(part));
  const value = (row: StatementRow) => column.of(row) ?? -1;
  return found.sort((a, b) => value(b) - value(a) || (b.sums[0] ?? 0) - (a.sums[0] ?? 0));
}
