import { describe, expect, test } from 'vitest';
import { Block, decodeSeries } from '../../src/data/codec.ts';
import vectors from './codec-vectors.json';

const bytesOf = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const valuesOf = (values: (number | null)[]) => values.map((value) => value ?? NaN);

describe('samples that crates/report wrote', () => {
  test.each(vectors)('$name', ({ values, hex }) => {
    expect(Array.from(decodeSeries(bytesOf(hex)))).toEqual(valuesOf(values));
  });

  test('come back in order when several lie in one block', () => {
    const block = vectors.flatMap(({ hex }) => {
      const bytes = [...bytesOf(hex)];
      expect(bytes.length).toBeLessThan(128);
      return [bytes.length, ...bytes];
    });
    const decoded = new Block(Uint8Array.from(block)).all();
    expect(decoded.map((series) => Array.from(series))).toEqual(vectors.map(({ values }) => valuesOf(values)));
  });

  test('that end too early are an error, never wrong numbers', () => {
    for (const { hex } of vectors) {
      const bytes = bytesOf(hex);
      for (let length = 0; length < bytes.length; length++) {
        expect(() => decodeSeries(bytes.subarray(0, length))).toThrow('end in the middle');
      }
    }
  });
});
