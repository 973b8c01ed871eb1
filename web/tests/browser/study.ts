/** Folders of studies as `whyso study run` leaves them, written by formulas, and the pages that the real program writes of them. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface Cell {
  server: string;
  condition: string;
  variant: string;
}

export interface TestStudy {
  /** As a study's file has them. */
  spec: {
    title: string;
    question: string;
    users: number[];
    repeats: number;
    baseline: string;
    servers?: string[];
    condition?: { name: string }[];
    variant: { name: string; at?: { after: number; set: Record<string, string> }[] }[];
    [more: string]: unknown;
  };
  /** The metric of a cell in a block; `random` is normal. */
  value: (cell: Cell, users: number, block: number, random: () => number) => number;
  /** Further measures of a level. */
  moreMeasures?: (cell: Cell, users: number, value: number) => Record<string, number>;
  /** Measures second by second. */
  overTime?: (cell: Cell, users: number, at_s: number, value: number, random: () => number) => Record<string, number>;
  points?: (cell: Cell, random: () => number) => { value: number; ms: number; status: Record<string, number> }[];
  /** The metric in the two starts of the pair, as multiples. */
  pair?: [number, number];
  suspect?: (cell: Cell) => string;
  /** Starts that are left undone, at the end. */
  undone?: number;
  notes?: string[];
}

/** Normal numbers of a fixed seed: mulberry32, then Box and Muller. */
function normal(seed: number): () => number {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

export function cellsOf(spec: TestStudy['spec']): Cell[] {
  const conditions = spec.condition ?? [{ name: '' }];
  return (spec.servers ?? ['']).flatMap((server) =>
    conditions.flatMap((condition) => spec.variant.map((variant) => ({ server, condition: condition.name, variant: variant.name }))),
  );
}

function startsOf(study: TestStudy): object[] {
  const { spec, value, moreMeasures, overTime, points, suspect } = study;
  const random = normal(7);
  const cells = cellsOf(spec);
  const metric = String(spec['metric'] ?? 'transactions_per_s');
  const seconds = Number(spec['seconds'] ?? 30);
  const starts: object[] = [];
  const start = (block: number, at: number, pair: boolean, times: number) => {
    const cell = cells[at] as Cell;
    const levels = points ? [] : spec.users.map((users) => {
      const own = value(cell, users, block, random) * times;
      const moments = overTime ? Array.from({ length: seconds }, (_, second) => ({ at_s: second + 0.5, measures: overTime(cell, users, second + 0.5, own, random) })) : [];
      return { users, measures: { [metric]: own, ...moreMeasures?.(cell, users, own) }, half_width_percent: 1.5, over_time: moments };
    });
    const peak = suspect ? { users: Math.max(...spec.users), users_interval: [Math.max(...spec.users), Math.max(...spec.users)], suspect: suspect(cell) } : null;
    starts.push({
      start: { block, cell: at, pair }, run: `20260101-${String(120000 + starts.length)}-77`, version: '11.8.3-MariaDB', seconds: 40.5, measured_s: 31,
      machine: { arithmetic_ms: 0.6, mhz: null, throttled: null }, levels, peak, points: points?.(cell, random) ?? [],
    });
  };
  const baseline = cells.findIndex((cell) => cell.variant === spec.baseline);
  const pair = study.pair ?? [1, 1.004];
  if (spec['pair'] !== false) pair.forEach((times, block) => start(block, baseline, true, times));
  for (let block = 0; block < spec.repeats; block++) cells.forEach((_, at) => start(block, at, false, 1));
  return starts.slice(0, starts.length - (study.undone ?? 0));
}

/** Writes a study's folder. */
export function writeStudy(folder: string, study: TestStudy): void {
  mkdirSync(join(folder, 'runs'), { recursive: true });
  writeFileSync(join(folder, 'study.json'), JSON.stringify({ spec: study.spec, files: {}, notes: study.notes ?? [] }));
  writeFileSync(join(folder, 'starts.jsonl'), startsOf(study).map((one) => `${JSON.stringify(one)}\n`).join(''));
}

/** The page that the program named by WHYSO makes of it. */
export function pageOf(study: TestStudy): { url: string; remove: () => void } {
  const whyso = process.env['WHYSO'];
  if (!whyso) throw new Error('WHYSO must name the program: WHYSO=…/release/whyso npm run test:browser');
  const folder = mkdtempSync(join(tmpdir(), 'whyso-study-'));
  writeStudy(folder, study);
  execFileSync(whyso, ['study', 'report', folder]);
  return { url: pathToFileURL(join(folder, 'report.html')).href, remove: () => rmSync(folder, { recursive: true }) };
}

/** Throughput that grows with users and saturates. */
const saturating = (users: number, most: number) => (most * users) / (users + 12);

/** Knobs of durability on two servers: gains, losses, noise, an unstable baseline. */
export const DURABILITY: TestStudy = {
  spec: {
    title: 'Durability: what a flush at every commit costs',
    question: "How much throughput do the redo log's flush at each commit and the doublewrite buffer cost on this machine?",
    servers: ['mariadb-11.8', 'mysql-sid'], users: [1, 8, 64, 256], repeats: 5, baseline: 'flush 1, doublewrite', steps: ['flush 1, doublewrite', 'flush 1, no doublewrite', 'flush 2, no doublewrite'],
    show: ['cpu_user_percent', 'log_fsyncs_per_s', 'latency_p99_ms'], matters_percent: 3,
    variant: ['flush 1, doublewrite', 'flush 1, no doublewrite', 'flush 2, doublewrite', 'flush 2, no doublewrite'].map((name) => ({ name })),
  },
  value: (cell, users, _block, random) => {
    const flush = cell.variant.startsWith('flush 2') ? 1 + 0.9 * (users / (users + 20)) : 1;
    const double = cell.variant.includes('no doublewrite') ? 1.02 : 1;
    const isWorse = cell.server === 'mysql-sid' && users === 256 && flush > 1 ? 0.5 : 1;
    const noise = cell.server === 'mysql-sid' && users === 1 ? 0.22 : users === 8 ? 0.06 : 0.012;
    return saturating(users, cell.server === 'mysql-sid' ? 5200 : 6100) * flush * double * isWorse * Math.exp(noise * random());
  },
  moreMeasures: (_cell, users, value) => ({ cpu_user_percent: Math.min(96, 4 + users / 3), log_fsyncs_per_s: value / 3, latency_p99_ms: (2000 * users) / value }),
  suspect: (cell) => (cell.variant.startsWith('flush 1') ? 'log-flush' : 'cpu-bound'),
  pair: [1, 0.88],
  notes: ['Nothing was left out.'],
};

/** A buffer pool made smaller, then larger, under load. */
export const RESIZED: TestStudy = {
  spec: {
    title: 'A buffer pool resized under load', question: 'How deep does throughput fall while the buffer pool changes its size, and for how long?',
    users: [16, 64], seconds: 60, repeats: 3, baseline: 'as it is', over_time: ['transactions_per_s', 'buffer_pool_hit_percent', 'threads_running'],
    variant: [
      { name: 'as it is' },
      { name: 'smaller', at: [{ after: 20, set: { innodb_buffer_pool_size: '128M' } }, { after: 80, set: { innodb_buffer_pool_size: '128M' } }] },
      { name: 'larger', at: [{ after: 22, set: { innodb_buffer_pool_size: '2G' } }, { after: 82, set: { innodb_buffer_pool_size: '2G' } }] },
    ],
  },
  value: (_cell, users, _block, random) => saturating(users, 4000) * Math.exp(0.01 * random()),
  overTime: (cell, users, at_s, value, random) => {
    const since = at_s - (cell.variant === 'smaller' ? 20 : cell.variant === 'larger' ? 22 : 1000);
    const dip = since < 0 ? 1 : 1 - (cell.variant === 'smaller' ? 0.75 : 0.35) * Math.exp(-since / (users === 64 ? 9 : 4));
    return { transactions_per_s: value * dip * Math.exp(0.02 * random()), buffer_pool_hit_percent: 99.8 * (since < 0 ? 1 : 1 - 0.1 * (1 - dip)), threads_running: users * (2 - dip) * 0.6 + random() };
  },
};

/** A knob in bytes swept within each start. */
export const CURVE: TestStudy = {
  spec: {
    title: 'Sorting in memory', question: 'From which sort_buffer_size on does a sort stay in memory, and is more any better?', users: [1], repeats: 4, baseline: 'few rows', pair: false,
    inside: { knob: 'sort_buffer_size', values: Array.from({ length: 14 }, (_, power) => 32_768 * 2 ** power), statement: 'SELECT c FROM sbtest1 ORDER BY c', status: ['Sort_merge_passes', 'Sort_rows'] },
    variant: [{ name: 'few rows' }, { name: 'many rows' }],
  },
  value: () => 1,
  points: (cell, random) =>
    Array.from({ length: 14 }, (_, power) => {
      const value = 32_768 * 2 ** power;
      const rows = cell.variant === 'many rows' ? 400_000 : 60_000;
      const passes = Math.max(0, Math.ceil((rows * 120) / value / 15 - 0.4));
      return { value, ms: (rows / 1000) * (1 + 0.28 * Math.log2(1 + passes) + (value > 2 ** 26 ? 0.12 : 0)) * Math.exp(0.03 * random()), status: { Sort_merge_passes: passes, Sort_rows: rows } };
    }),
};

/** Lower is better; one number of users; more variants than colours. */
export const LATENCY: TestStudy = {
  spec: {
    title: 'What the Performance Schema costs in response time', question: 'How much longer do transactions take?', users: [16], repeats: 4, baseline: 'off', metric: 'latency_mean_ms',
    variant: ['off', 'nothing on', 'default', 'global, not timed', 'global, timed', 'thread, timed', 'thread, by cycles', 'history', 'all consumers', 'all, by cycles'].map((name) => ({ name })),
  },
  value: (cell, _users, _block, random) => 4.2 * (1 + 0.021 * Math.max(0, LATENCY.spec.variant.findIndex((candidate) => candidate.name === cell.variant))) * Math.exp(0.012 * random()),
  undone: 6,
};
