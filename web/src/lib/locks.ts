/** Lock waits added up by kind of lock. Pure. */

import type { LockObject } from '../data/model.ts';

export interface LockKind {
  kind: string;
  samples: number;
  /** Null where it is known of none. */
  waited_s: number | null;
}

/** The kinds that connections were found waiting for, the most samples first. */
export function kindsOf(objects: LockObject[]): LockKind[] {
  const kinds = new Map<string, LockKind>();
  for (const object of objects) {
    const kind = kinds.get(object.lock) ?? { kind: object.lock, samples: 0, waited_s: null };
    kind.samples += object.samples;
    if (object.waited_s !== null) kind.waited_s = (kind.waited_s ?? 0) + object.waited_s;
    kinds.set(object.lock, kind);
  }
  return [...kinds.values()].sort((a, b) => b.samples - a.samples);
}

/** Such as "shop.orders (PRIMARY)". */
export function lockPlace({ object, index }: { object: string; index: string }): string {
  return `${object || 'not known'}${index ? ` (${index})` : ''}`;
}
