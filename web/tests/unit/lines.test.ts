import { expect, test } from 'vitest';
import { hotLines, LEFT_OUT, linesOf, NOT_KNOWN, shownLines, sourceOf } from '../../src/lib/lines.ts';

/** Calls in preorder: depth, name, file, line, exclusive microseconds. */
type Call = [number, number, number, number, number];

function linesWith(calls: Call[]) {
  const keys = [...new Set(calls.map(([, name, file, line]) => `${name} ${file} ${line}`))];
  const parts = keys.map((key) => key.split(' ').map(Number) as [number, number, number]);
  const column = (of: (call: Call) => number) => Float64Array.from(calls, of);
  const lines = linesOf([
    column(([depth]) => depth),
    column(([, name, file, line]) => keys.indexOf(`${name} ${file} ${line}`)),
    Float64Array.from(parts, ([name]) => name),
    Float64Array.from(parts, ([, file]) => file),
    Float64Array.from(parts, ([, , line]) => line),
  ]);
  return { lines, exclusive: column((call) => call[4]) };
}

const textOf = (source: ReturnType<typeof sourceOf>) =>
  [...source.files].flatMap(([file, lines]) => [...lines].map(([line, of]) => [file, line, of.exclusive[0], of.inclusive[0]]));

test('a line has its own time and that of what it called', () => {
  // Function 1 at line 12 calls 2, works itself at line 14, and calls itself from 13; once its line is not known, once it was left out.
  const { lines, exclusive } = linesWith([
    [0, 0, NOT_KNOWN, 0, 0],
    [1, 1, 0, 12, 0],
    [2, 2, 0, 40, 10],
    [1, 1, 0, 13, 0],
    [2, 1, 0, 12, 0],
    [3, 2, 0, 41, 7],
    [1, 1, 0, 14, 3],
    [1, 1, NOT_KNOWN, 0, 1],
    [1, 1, LEFT_OUT, 0, 2],
  ]);
  const source = sourceOf(lines, [exclusive], 1);
  expect(textOf(source)).toEqual([
    [0, 12, 0, 17],
    [0, 13, 0, 7],
    [0, 14, 3, 3],
  ]);
  expect([source.notKnown.exclusive, source.leftOut.inclusive]).toEqual([[1], [2]]);
  const isHot = hotLines(source);
  expect([...(source.files.get(0) ?? [])].filter(([, of]) => isHot(of)).map(([line]) => line)).toEqual([12, 14]);
});

test('exclusive times of lines add up to those of their function, whatever the calls', () => {
  let state = 11;
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  for (let round = 0; round < 50; round++) {
    const calls: Call[] = [[0, 0, NOT_KNOWN, 0, 0]];
    for (let number = 0; number < 40; number++) {
      const depth = 1 + random((calls.at(-1)?.[0] ?? 0) + 1);
      const file = random(4) - 2;
      calls.push([depth, 1 + random(3), file, file < 0 ? 0 : 1 + random(4), random(100)]);
    }
    const { lines, exclusive } = linesWith(calls);
    for (const name of [1, 2, 3]) {
      const source = sourceOf(lines, [exclusive, exclusive], name);
      const all = [...source.files.values()].flatMap((file) => [...file.values()]).concat(source.notKnown, source.leftOut);
      const own = calls.filter((call) => call[1] === name).reduce((sum, call) => sum + call[4], 0);
      expect(all.reduce((sum, value) => sum + (value.exclusive[1] ?? 0), 0)).toBe(own);
      for (const one of all) expect(one.exclusive[0]).toBeLessThanOrEqual(one.inclusive[0] ?? 0);
    }
  }
});

test('lines stand with those around them, where their text is there', () => {
  const times = { exclusive: [1], inclusive: [1] };
  const withTime = new Map([[5, times], [20, times]]);
  const text = { file: 'f.c', path: '/src/f.c', length: 30, lines: [4, 5, 6].map((line): [number, string] => [line, `line ${line}`]) };
  const shown = shownLines(withTime, text, 4);
  expect(shown.map(({ line, text, follows }) => [line, text, follows])).toEqual([
    [4, 'line 4', false],
    [5, 'line 5', true],
    [6, 'line 6', true],
    [20, null, false],
  ]);
  expect(shownLines(withTime, undefined, 4).map(({ line }) => line)).toEqual([5, 20]);
});
