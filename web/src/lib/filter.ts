/** The filter of threads, stacks and statements. A thread must meet every condition, as in the terminal's views. Pure. */

import { clock } from './words.ts';

export interface Filter {
  /** Empty: of any role. */
  role: string;
  /** A part of a name, in any case; empty: any. */
  name: string;
  /** By the kernel's numbers; empty: any. */
  tids: ReadonlySet<number>;
  /** By the server's numbers; empty: for any, or for none. */
  connections: ReadonlySet<number>;
  /** A part of a statement without its literals, in any case; empty: any, or none. */
  statement: string;
}

export interface ThreadWork {
  tid: number;
  name: string;
  role: string;
  connection: number | null;
  /** Empty where none is known. */
  statement: string;
}

export const EVERYTHING: Filter = { role: '', name: '', tids: new Set(), connections: new Set(), statement: '' };

const holds = (text: string, part: string) => text.toLowerCase().includes(part.toLowerCase());

export function hasThread(filter: Filter, thread: Pick<ThreadWork, 'tid' | 'name' | 'role'>): boolean {
  return (
    (filter.role === '' || filter.role === thread.role) &&
    (filter.tids.size === 0 || filter.tids.has(thread.tid)) &&
    (filter.name === '' || holds(thread.name, filter.name))
  );
}

/** Reports whether work meets the conditions. Work whose connection or statement is not known does not meet one on it. */
export function hasWork(filter: Filter, work: Pick<ThreadWork, 'connection' | 'statement'>): boolean {
  return (
    (filter.connections.size === 0 || (work.connection !== null && filter.connections.has(work.connection))) &&
    (filter.statement === '' || (work.statement !== '' && holds(work.statement, filter.statement)))
  );
}

export function asksForWork(filter: Filter): boolean {
  return filter.connections.size > 0 || filter.statement !== '';
}

export function isFiltered(filter: Filter): boolean {
  return filter.role !== '' || filter.name !== '' || filter.tids.size > 0 || asksForWork(filter);
}

/** More numbers than this are not listed one by one. */
const NUMBERS_MAX = 6;

/** Such as `threads of role purge, named "ib"`. */
export function filterText(filter: Filter): string {
  const numbers = (of: ReadonlySet<number>) => {
    const first = [...of].sort((a, b) => a - b).slice(0, NUMBERS_MAX);
    const rest = of.size - first.length;
    return `${first.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
  };
  const words = [filter.role === '' ? 'all threads' : `threads of role ${filter.role}`];
  if (filter.name !== '') words.push(`named “${filter.name}”`);
  if (filter.tids.size > 0) words.push(`${filter.tids.size === 1 ? 'thread' : 'threads'} ${numbers(filter.tids)}`);
  if (filter.connections.size > 0) words.push(`at work for ${filter.connections.size === 1 ? 'connection' : 'connections'} ${numbers(filter.connections)}`);
  if (filter.statement !== '') words.push(`executing a statement with “${filter.statement}”`);
  return words.join(', ');
}

/** Numbers between commas or blanks, and what is none. */
export function numbersIn(text: string): { numbers: Set<number>; wrong: string } {
  const parts = text.split(/[\s,]+/).filter((part) => part !== '');
  const wrong = parts.find((part) => !/^\d{1,15}$/.test(part)) ?? '';
  return { numbers: new Set(parts.filter((part) => /^\d{1,15}$/.test(part)).map(Number)), wrong };
}

/** Two times since the load began, such as 10s-25s or 1:10-1:25; null where it is none. */
export function stretchIn(text: string): { from: number; to: number } | null {
  const [from, to, ...more] = text.split(/\.\.|[-–]|\bto\b/).map(secondsIn);
  return more.length === 0 && from !== undefined && to !== undefined && from !== null && to !== null && from < to ? { from, to } : null;
}

function secondsIn(text: string): number | null {
  const found = /^(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)\s*(s|m|min)?$/.exec(text.trim());
  if (!found) return null;
  const [, hours, minutes, last, unit] = found;
  const scale = unit?.startsWith('m') && minutes === undefined ? 60 : 1;
  return Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(last) * scale;
}

/** As it is typed. */
export function stretchText({ from, to }: { from: number; to: number }): string {
  const step = to - from < 10 ? 0.1 : 1;
  return `${clock(Math.max(0, from), step)}-${clock(to, step)}`;
}
