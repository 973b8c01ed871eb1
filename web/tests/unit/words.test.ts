import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as words from '../../src/lib/words.ts';

type Case = unknown[];

/** The cases of the crate `words`, whose names have underscores. */
const fixtures = JSON.parse(readFileSync(new URL('../../../crates/words/fixtures.json', import.meta.url), 'utf8')) as Record<string, Case[]>;

const named = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
/** JSON has no NaN and no Infinity. */
const argument = (value: unknown) => (typeof value === 'string' && /^(NaN|-?Infinity)$/.test(value) ? Number(value) : value);

test.each(Object.entries(fixtures))('%s writes what the program writes', (name, cases) => {
  const write = (words as unknown as Record<string, (...of: unknown[]) => string>)[named(name)];
  expect(write, `${named(name)} is missing`).toBeTypeOf('function');
  const written = cases.map((example) => [...example.slice(0, -1), write?.(...example.slice(0, -1).map(argument))]);
  expect(written).toEqual(cases);
});

test('every function of the page has cases', () => {
  const functions = Object.entries(words).filter(([, of]) => typeof of === 'function');
  expect(functions.map(([name]) => name).sort()).toEqual(Object.keys(fixtures).map(named).sort());
});

test('what is absent is a dash', () => {
  expect([words.number(null), words.percent(undefined), words.milliseconds(null), words.amount(undefined, 'ns')]).toEqual(['–', '–', '–', '–']);
});
