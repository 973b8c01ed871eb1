/** Numbers for people. */

import type { Kind, Steadiness } from '../data/model.ts';
import type { Mode } from './derive.ts';

const MINUS = '−';

/** Three significant digits below a thousand, whole numbers with separators above. */
export function num(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return grouped(Math.round(value));
  if (size >= 9.995) return sign(value.toFixed(1));
  if (size >= 0.9995) return sign(value.toFixed(2));
  if (size >= 0.0009995) return sign(value.toPrecision(2));
  const [mantissa, exponent] = value.toExponential(1).split('e') as [string, string];
  return `${sign(mantissa)}·10${superscript(exponent)}`;
}

/** How a level was not steady; empty where nothing shows it. */
export function howUnsteady(steadiness: Steadiness): string {
  switch (steadiness.is) {
    case 'unstable_from':
      return `unstable from ${num(steadiness.s)} s`;
    case 'trend': {
      const { from_per_s: from, to_per_s: to } = steadiness;
      return `throughput ${to > from ? 'climbed' : 'fell'} from ${num(from)}/s to ${num(to)}/s`;
    }
    case 'still_warming':
      return 'still warming up';
    default:
      return '';
  }
}

export function whole(value: number): string {
  return Number.isFinite(value) ? grouped(Math.round(value)) : '–';
}

/** Short, for axes: 1.5k, 20M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  for (const [factor, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (size >= factor) return sign(trim(value / factor)) + letter;
  }
  if (size >= 0.001) return sign(trim(value));
  return num(value);
}

export function bytes(value: number): string {
  for (const [factor, unit] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']] as const) {
    if (value >= factor) return `${num(value / factor)} ${unit}`;
  }
  return `${whole(value)} B`;
}

export function percent(fraction: number | null | undefined): string {
  if (fraction === null || fraction === undefined || !Number.isFinite(fraction)) return '–';
  const value = fraction * 100;
  if (value > 0 && value < 0.95) return `${value.toFixed(1)} %`;
  return `${Math.round(value)} %`;
}

/** Milliseconds, in the unit that suits them. */
export function ms(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value >= 10_000) return `${num(value / 1000)} s`;
  if (value < 0.1 && value > 0) return `${num(value * 1000)} µs`;
  return `${num(value)} ms`;
}

/** Seconds since the run's origin as m:ss, finer where the step is. */
export function clock(seconds: number, step = 1): string {
  const size = Math.abs(seconds);
  const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const rounded = Number(size.toFixed(digits));
  const hours = Math.floor(rounded / 3600);
  const minutes = Math.floor((rounded % 3600) / 60);
  const rest = (rounded % 60).toFixed(digits).padStart(digits > 0 ? 3 + digits : 2, '0');
  const head = hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}` : String(minutes);
  return `${seconds < 0 && rounded > 0 ? MINUS : ''}${head}:${rest}`;
}

export function users(count: number): string {
  return count === 1 ? '1 user' : `${grouped(count)} users`;
}

export interface Unit {
  /** What a recorded value is multiplied by. */
  factor: number;
  /** What follows the number. */
  suffix: string;
}

/** CPU time a second is how many CPUs were kept busy; that says more than "s/s". */
const CPU_TIME = /^(user|nice|system|iowait|irq|softirq|steal|idle|guest|cpu|run|runqueue)_ns$/;

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

/** A value with its unit: bytes and large counts with a prefix. */
export function withUnit(value: number, suffix: string): string {
  if (Number.isNaN(value)) return 'gap';
  if (suffix.startsWith('B') && Math.abs(value) >= 1000) return `${siBytes(value)}${suffix.slice(1)}`;
  const space = suffix === '' || suffix.startsWith('/') ? '' : ' ';
  return `${num(value)}${space}${suffix}`;
}

function siBytes(value: number): string {
  for (const [factor, unit] of [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']] as const) {
    if (Math.abs(value) >= factor) return `${num(value / factor)} ${unit}`;
  }
  return `${num(value)} B`;
}

function grouped(value: number): string {
  return sign(String(Math.abs(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ','), value < 0);
}

function sign(text: string, negative = false): string {
  return negative ? MINUS + text : text.replace('-', MINUS);
}

function trim(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return Number(value.toFixed(size < 1 ? 4 : digits)).toString();
}

function superscript(exponent: string): string {
  const signs: Record<string, string> = { '-': '⁻', '+': '' };
  return [...exponent].map((character) => signs[character] ?? '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(character)] ?? character).join('');
}
