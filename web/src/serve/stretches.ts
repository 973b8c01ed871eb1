/** Runs and windows of them, as addresses hold them and as readers type them. Pure. */

import type { Span } from '../lib/desk.svelte.ts';
import { clock } from '../lib/words.ts';

export interface Stretch {
  id: string;
  /** In seconds of the run; null: all of it. */
  window: Span | null;
}

const tenth = (s: number) => String(Math.round(s * 10) / 10);

/** "ID", or "ID@10.5-20". */
export function packStretch({ id, window }: Stretch): string {
  return window ? `${id}@${tenth(window.from)}-${tenth(window.to)}` : id;
}

/** An id may hold an @ of its own: what stands after the last one is a window if it reads like one. */
export function unpackStretch(text: string): Stretch {
  const found = /^(.+)@(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(text);
  const [id, from, to] = [found?.[1] ?? text, Number(found?.[2]), Number(found?.[3])];
  return found && from < to ? { id, window: { from, to } } : { id: text, window: null };
}

/** All of a side of the address. */
export function unpackSide(text: string | null): Stretch[] {
  return (text ?? '').split(',').filter((part) => part !== '').map(unpackStretch);
}

/** "10:05–10:20". */
export function windowText(window: Span): string {
  const step = window.to - window.from < 20 ? 0.1 : 1;
  return `${clock(window.from, step)}–${clock(window.to, step)}`;
}

/** Seconds of "1:02:03", "10:05.5", "75" or "75s"; null of anything else. */
function seconds(text: string): number | null {
  const parts = /^(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)s?$/.exec(text.trim());
  if (!parts) return null;
  const [hours, minutes, rest] = [parts[1], parts[2], parts[3]].map((part) => Number(part ?? 0)) as [number, number, number];
  return (hours * 60 + minutes) * 60 + rest;
}

/** What was typed: two times with a dash between them. Undefined where it is none; null where nothing was typed: all of the run. */
export function typedWindow(text: string): Span | null | undefined {
  if (text.trim() === '') return null;
  const [from, to, more] = text.split(/\.\.|[-–]/);
  const [begin, end] = [seconds(from ?? ''), seconds(to ?? '')];
  return begin !== null && end !== null && begin < end && more === undefined ? { from: begin, to: end } : undefined;
}
