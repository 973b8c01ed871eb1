import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

/** Next to this file, so that the schema is found where this package has it. */
const PLACE = fileURLToPath(new URL('./board.ts', import.meta.url));
const BOARD = fileURLToPath(new URL('../../../docs/grafana/whyso.json', import.meta.url));

/** What the schema of Grafana's dashboards has against a board. */
function problems(board: unknown): string[] {
  const text = `import type { Dashboard } from '@grafana/schema';\nexport const board: Dashboard = ${JSON.stringify(board)};\n`;
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.getSourceFile = (name, ...more) =>
    name === PLACE ? ts.createSourceFile(name, text, ts.ScriptTarget.ESNext) : getSourceFile(name, ...more);
  host.fileExists = (name) => name === PLACE || fileExists(name);
  const found = ts.getPreEmitDiagnostics(ts.createProgram([PLACE], options, host));
  return found.map((problem) => ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
}

test("the board for Grafana keeps to the schema of Grafana's dashboards", () => {
  expect(problems(JSON.parse(readFileSync(BOARD, 'utf8')))).toEqual([]);
}, 60_000);

test('a board that does not is refused', () => {
  expect(problems({ title: 'x', schemaVersion: 39, panels: [{ type: 5 }] }).join()).toContain('number');
  expect(problems({ title: 'x', schemaVersion: 39, panls: [] }).join()).toContain('panls');
}, 60_000);
