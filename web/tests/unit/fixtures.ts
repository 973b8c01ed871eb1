/** The cases that the Rust crates' arithmetic and the page's are both tested with. */

import { readFileSync } from 'node:fs';

/** Reads a fixture file by its path within `crates`, such as "series/fixtures/growth.json". */
export function fixture<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(`../../../crates/${path}`, import.meta.url), 'utf8')) as T;
}

/** Returns numbers with NaN in place of null, which is a gap. */
export function numbers(values: (number | null)[]): Float64Array {
  return Float64Array.from(values, (value) => value ?? NaN);
}
