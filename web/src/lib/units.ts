/** The units that series are shown in. Pure. */

import type { Kind } from '../data/model.ts';
import type { Mode } from './derive.ts';
import { amount } from './words.ts';

export interface Unit {
  /** What a recorded value is multiplied by. */
  factor: number;
  /** What follows the number. */
  suffix: string;
}

/** CPU time per second is how many CPUs were kept busy; that is clearer than "s/s". */
const CPU_TIME = /^(user|nice|system|iowait|irq|softirq|steal|idle|guest|cpu|clients_cpu|unclear_cpu|run|runqueue)_ns$/;

/** The unit in which a series is shown in a mode. */
export function unitOf(kind: Kind, unit: string, mode: Mode, metric = ''): Unit {
  if (kind === 'counter' && mode === 'rate' && CPU_TIME.test(metric)) return { factor: 1e-9, suffix: 'CPUs' };
  const counted = unit === '1' || unit === '' ? '' : unit === 'bytes' ? 'B' : unit;
  if (kind === 'counter' && mode === 'rate') {
    return unit === 'ns' ? { factor: 1e-9, suffix: 's/s' } : { factor: 1, suffix: `${counted}/s` };
  }
  if (kind === 'counter' && mode === 'per_transaction') {
    return unit === 'ns' ? { factor: 1e-3, suffix: 'µs/transaction' } : { factor: 1, suffix: `${counted}/transaction` };
  }
  if (unit === 'ns') return kind === 'counter' ? { factor: 1e-9, suffix: 's' } : { factor: 1e-6, suffix: 'ms' };
  if (unit === '1/s') return { factor: 1, suffix: '/s' };
  return { factor: 1, suffix: counted };
}

/** A value of a chart with its unit; "gap" where there is none. */
export function withUnit(value: number, suffix: string): string {
  return Number.isNaN(value) ? 'gap' : amount(value, suffix);
}
