/** The time budget's bars: which part is drawn where, and in which colour. Pure. */

import type { Budget, Evidence, Part, Window } from '../data/model.ts';

export const UNACCOUNTED = 'unaccounted';

export interface PartStyle {
  /** The name in a sentence. */
  name: string;
  meaning: string;
  color: string;
}

/** In the order in which they are stacked, from the client's side through the server and back. */
export const PARTS: Record<Part, PartStyle> = {
  client_queue: { name: 'due, not yet sent', meaning: 'the transaction was due and no user was free to send it (open loop)', color: '#8d979f' },
  connect: { name: 'making connections', meaning: 'a new connection was requested and not yet ready; without the time in other parts', color: '#7a5c45' },
  client_pause: { name: 'pauses of the script', meaning: 'the user paused within a transaction, as its script asks', color: '#c3c9cd' },
  client_cpu: { name: "generator's own time", meaning: 'the load generator had an answer and had not yet sent what came next', color: '#a88900' },
  client_delay: { name: 'waiting for the generator', meaning: "the answer had arrived, but the load generator's thread had not come to it yet", color: '#d8bd4a' },
  transit_in: { name: 'waiting to be picked up', meaning: 'sent, and not yet picked up by a thread of the server; without its wake-up and its wait for a CPU', color: '#7fb8e0' },
  wakeup: { name: 'waking idle CPUs', meaning: "the server's thread was woken on a CPU that was idle, until it ran", color: '#14a3a0' },
  runqueue: { name: 'waiting for a CPU', meaning: "the server's thread was ready to run, and another task had the CPU", color: '#e08a1e' },
  cpu: { name: 'work on a CPU', meaning: "the server's thread ran", color: '#2f7fb8' },
  lock: { name: 'waiting on locks', meaning: "the server's thread slept on a lock or a condition of the server (futex), row locks and group commits included", color: '#a2559c' },
  kernel_lock: { name: 'locks inside the kernel', meaning: "the server's thread slept on a lock inside the kernel, such as a file's inode lock", color: '#6f4083' },
  file_read: { name: 'reads of files', meaning: "the server's thread slept in a read of a file", color: '#6cae58' },
  file_write: { name: 'writes to files', meaning: "the server's thread slept in a write to a file", color: '#2f7d4f' },
  file_sync: { name: 'syncs of files', meaning: "the server's thread slept in fsync or a similar call", color: '#9c4331' },
  net_send: { name: 'waiting to send', meaning: "the server's thread slept in sending: the socket's buffer was full", color: '#5a73d6' },
  page_fault: { name: 'memory pages', meaning: "the server's thread slept in a page fault", color: '#d66a8b' },
  sleep: { name: 'sleeping', meaning: "the server's thread slept by the clock, on purpose", color: '#66788a' },
  other: { name: 'other waits', meaning: "the server's thread slept for another reason", color: '#9aa4ac' },
  transit_out: { name: 'answers on their way', meaning: "replied, and not yet arrived at the load generator's machine", color: '#a9d0ec' },
  server_and_network: { name: 'server and network', meaning: "sent, and not yet answered, measured on the load generator's machine; not divided further", color: '#2f7fb8' },
};

export interface Segment {
  part: Part | typeof UNACCOUNTED;
  ms: number;
  /** Milliseconds at which it begins and ends; below 0 where the parts hold more than the response time. */
  from: number;
  to: number;
}

/** One bar: its parts on top of each other, then the remainder; a remainder below 0 hangs from the axis. */
export function segmentsOf(budget: Budget): Segment[] {
  const segments: Segment[] = [];
  let top = 0;
  for (const { part, ms } of budget.parts) {
    if (ms <= 0) continue;
    segments.push({ part, ms, from: top, to: top + ms });
    top += ms;
  }
  const rest = budget.unaccounted_ms;
  if (rest !== 0) segments.push({ part: UNACCOUNTED, ms: rest, from: rest > 0 ? top : 0, to: rest > 0 ? top + rest : rest });
  return segments;
}

/** Parts that some bar shows at least a sliver of, in order. */
export function partsShown(budgets: Budget[]): Part[] {
  const isShown = (part: Part) =>
    budgets.some((budget) => budget.parts.some((candidate) => candidate.part === part && candidate.ms > 0.001 * budget.response_ms));
  return (Object.keys(PARTS) as Part[]).filter(isShown);
}

/** Returns the tracer's series that a segment is based on, or the level if the generator measured it. */
export function evidenceOfPart(budget: Budget, part: Segment['part'], window: Window): Evidence {
  const series = budget.parts.find((candidate) => candidate.part === part)?.series[0];
  if (series) return { is: 'series', series, begin_ns: window.begin_ns, end_ns: window.end_ns };
  return { is: 'levels', quantity: 'latency_mean_ms', levels: [budget.level] };
}
