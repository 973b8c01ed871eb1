/** What the levels of a sweep differ in, and so what charts and tables are against. Pure. */

import type { Level, RunInfo } from '../data/model.ts';
import { number, rate, users } from './words.ts';

export interface Axis {
  /** A level's place on it. */
  at: (level: Level) => number;
  /** The same as text, without its unit. */
  short: (level: Level) => string;
  /** With its unit: "8 users", "1,000/s". */
  name: (level: Level) => string;
  /** What a column of such numbers is called. */
  head: string;
  /** What the sweep is against: "Throughput and latency against …". */
  against: string;
  /** What the axis of a chart is called. */
  title: string;
}

const USERS: Axis = {
  at: (level) => level.users,
  short: (level) => String(level.users),
  name: (level) => users(level.users),
  head: 'users',
  against: 'users',
  title: 'users (concurrent connections',
};

const dueRate = (level: Level) => level.result.rate_per_s ?? level.users;
const RATES: Axis = {
  at: dueRate,
  short: (level) => number(dueRate(level)),
  name: (level) => rate(dueRate(level)),
  head: 'due/s',
  against: 'the rate that is due',
  title: 'transactions due per second (open loop',
};

export function axisOf(run: Pick<RunInfo, 'levels'>): Axis {
  const rates = run.levels.filter((level) => level.purpose === 'sweep').map((level) => level.result.rate_per_s ?? null);
  return !rates.includes(null) && new Set(rates).size > 1 ? RATES : USERS;
}
