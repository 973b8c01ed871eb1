import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FlameHead, Head, LockKind, LocksHead, StatementRow } from '../../src/data/model.ts';
import { deflateRawSync } from 'node:zlib';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { headOf, HOSTILE, launch, open, reportHtml, variant } from './report.ts';

let browser: Browser;
const levels = headOf(reportHtml).run.levels.filter((level) => level.purpose === 'sweep');
const [first, second] = levels;
if (!first || !second) throw new Error('the report has fewer than two levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const cells = (page: Page, id: string, row: number) => page.locator(`#${id} tbody tr`).nth(row).locator('td').allTextContents();
const showLevel = (page: Page, name: string, at: number) => page.getByLabel(name).selectOption(String(at));

const statement = (text: string, count: number, sums: (number | null)[]): StatementRow => ({
  command: 'QUERY', statement: text, count, sums, known: sums.map((sum) => (sum === null ? 0 : count)), mean_ns: (sums[0] ?? 0) / count, p95_ns: 2e6, max_ns: 9e6,
});

/** At the first level two statements, at the second one. */
function withStatements(head: Head) {
  const table = (level: number, rows: StatementRow[], total: StatementRow) => ({ level, seconds: 10, own_left_out: 3, total: { ...total, p95_ns: null }, rows, left: 4, left_count: 40 });
  head.explanation.about = first?.index ?? 0;
  head.statements = {
    metrics: ['response', 'rows_sent', 'rows_examined', 'errors'], times: 1, cost: 'What it cost.',
    levels: [
      table(first?.index ?? 0, [statement(HOSTILE, 10, [9e9, 5, null, 0]), statement('COMMIT', 10, [1e9, null, null, 7])], statement('', 20, [10e9, 5, null, 7])),
      table(second?.index ?? 0, [statement('SELECT 1', 1, [1e6, 1, null, 0])], statement('', 1, [1e6, 1, null, 0])),
    ],
  };
}

test('statements stand by any column, follow the level and the filter, and show what is not known', async () => {
  const changed = variant(withStatements);
  const { page, complaints } = await open(browser, `${changed.url}#statements`);
  // count, mean, p95, max, response, rows sent, rows examined, errors
  expect(await cells(page, 'asked', 0)).toEqual(['<Total>', '20', '500 ms', '', '9 ms', '10 s', '5', 'not known', '7']);
  expect(await cells(page, 'asked', 1)).toEqual([`${HOSTILE} QUERY`, '10', '900 ms', '2 ms', '9 ms', '9 s', '5', 'not known', '0']);
  expect((await cells(page, 'asked', 2)).slice(5)).toEqual(['1 s', '–', 'not known', '7']);
  await page.locator('#asked').getByRole('button', { name: 'errors' }).click();
  expect((await cells(page, 'asked', 1))[0]).toBe('COMMIT QUERY');
  expect(await page.locator('#asked').getByRole('button', { name: 'rows examined' }).isDisabled()).toBe(true);
  expect(await page.locator('#asked').textContent()).toContain('4 more statements, with 40 commands');
  await page.locator('#filters').getByLabel('statement').fill('commit');
  await expect.poll(() => page.locator('#asked tbody tr').count()).toBe(2);
  await page.locator('#filters').getByLabel('statement').fill('');
  await showLevel(page, 'level of the statements', 1);
  await expect.poll(async () => (await cells(page, 'asked', 1))[0]).toBe('SELECT 1 QUERY');
  // The level is the whole page's.
  expect(await page.locator('.levels tbody tr').nth(1).getAttribute('class')).toContain('chosen');
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('lock waits stand by kind, table and instrument, with who held and who waited', async () => {
  const none: LocksHead = {
    level: second.index, window: '', seconds: 10, looks: 20,
    snapshots: { taken: 20, failed: 0, last_good_s_before_end: 0, last_took_ms: 1, are_good: true, contradiction: null, text: '' },
    row_locks_counted: null, requests_waited_s: null, objects: [], instruments: [], tables: [], not_measured: ['waits by instrument: off'],
    left: { objects: 0, instruments: 0, tables: 0 },
  };
  const object = (lock: LockKind, samples: number, held: string | null) => ({
    lock, object: 'shop.orders', index: lock === 'row' ? 'PRIMARY' : '', mode: 'X', samples, share: 1, waited_s: samples / 2, statement: HOSTILE, held_by: { statement: held, share: 0.9 },
  });
  const changed = variant((head) => {
    head.explanation.about = first.index;
    head.locks = [
      {
        ...none, level: first.index, row_locks_counted: { waits: 70, waited_s: 40 }, requests_waited_s: 50, objects: [object('row', 80, 'COMMIT'), object('metadata', 4, null)],
        instruments: [{ instrument: 'wait/synch/mutex/innodb/log', count: 100, waited_s: 5, share_of_lock: 0.1 }], tables: [{ table: 'shop.orders', locks: 1, locks_s: 2, rows: 3, rows_s: 4 }],
        not_measured: [], left: { objects: 6, instruments: 0, tables: 0 },
      },
      none,
    ];
  });
  const { page, complaints } = await open(browser, `${changed.url}#locks`);
  const locks = page.locator('#locks');
  const table = async (name: string) => (await locks.locator(name).locator('td').allTextContents()).map((text) => text.trim());
  expect(await table('table.kinds')).toEqual(['row', '80', '40 s', 'metadata', '4', '2 s']);
  expect(await table('table.objects')).toEqual(['80', '100 %', '40 s', 'row', 'X', 'shop.orders (PRIMARY)', '90 % COMMIT', HOSTILE, '4', '100 %', '2 s', 'metadata', 'X', 'shop.orders', '90 % between statements, or not known', HOSTILE]);
  await locks.getByRole('button', { name: 'metadata' }).click();
  expect((await table('table.objects'))[0]).toBe('4');
  const text = (await locks.textContent()) ?? '';
  for (const part of ['84 connections were found waiting for a lock in 20 snapshots', 'InnoDB counted 70 waits', 'And 6 more', 'wait/synch/mutex/innodb/log']) expect(text).toContain(part);
  await showLevel(page, 'level of the lock waits', 1);
  await expect.poll(() => locks.textContent()).toContain('No connection was found waiting for a lock in 20 snapshots');
  expect(await locks.textContent()).toContain('Not measured: waits by instrument: off.');
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

/** Two calls: `walk` at lines 3 (300 ms) and 40 (100 ms, not on CPU: for a lock) of its file, and once where no line is known. */
function withLines(): { url: string; remove: () => void } {
  const [tree, times, samples, lines, texts] = [610_000, 610_001, 610_002, 610_003, 610_004];
  const flame: FlameHead = {
    metrics: ['cpu', 'lock', 'io', 'other'], threads: ['connection', 'background'], modules: ['', 'mariadbd'], names: [['<Total>', 0], ['walk', 1]], nodes: 2, block: tree, folded: 0, folded_below: 0.0001, observer_share: 0,
    knows_lines: true, lines: { nodes: 4, block: lines, texts_block: texts },
    levels: [{ level: first?.index ?? 0, seconds: 10, transactions: 100, block: times, columns: Array.from({ length: 8 }, (_, at) => ({ total_us: at === 0 ? 350_000 : 100_000, half_us: 0, samples: 3 })) }],
    samples: {
      roles: ['connection'], threads: [[1, 'one']], statements: [], edges_ns: [first?.window.begin_ns ?? 0, first?.window.end_ns ?? 1], levels: [[0, 1]], step_s: 1, rows: 3, block: samples, lines: true, note: '',
    },
  };
  const column = (...values: number[]) => values;
  const none = column(0, 0);
  const report = variant(
    (head) => {
      head.explanation.about = first?.index ?? 0;
      head.flame = flame;
    },
    undefined,
    {
      [tree]: [column(0, 1), column(0, 1)],
      [times]: [column(0, 350_000), column(0, 100_000), none, none, none, none, none, none],
      // By whom: role, thread, connection, statement; then metric, whom, stretch, node, time, spread, count.
      [samples]: [column(0), column(0), column(NaN), column(NaN), column(0, 0, 1), column(0, 0, 0), column(0, 0, 0), column(1, 3, 2), column(300_000, 50_000, 100_000), column(0, 0, 0), column(1, 1, 1)],
      [lines]: [column(0, 1, 1, 1), column(0, 1, 2, 3), column(0, 1, 1, 1), column(0, 1, 1, 1), column(-1, 0, 0, -1), column(0, 3, 40, 0)],
    },
  );
  const object = { files: [{ file: './walk.c', path: '/src/walk.c', length: 50, lines: [[2, 'int walk(void) {'], [3, HOSTILE], [4, '}']] }], around: 4, lines_max: 20_000, without: 1 };
  const packed = deflateRawSync(Buffer.from(JSON.stringify(object))).toString('base64');
  const file = fileURLToPath(report.url);
  writeFileSync(file, readFileSync(file, 'utf8').replace('</body>', () => `<script type="application/octet-stream;base64" id="whyso-block-${texts}">${packed}</script></body>`));
  return report;
}

test('a function that is chosen shows its source line by line, and what has no line or no text is marked', async () => {
  const changed = withLines();
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = page.locator('#flame');
  await section.getByRole('button', { name: /functions as a table/ }).click();
  await section.getByRole('group', { name: 'functions' }).getByRole('button', { name: 'walk' }).click();
  const source = section.getByRole('group', { name: 'source of walk' });
  const rows = () => source.locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent?.trim() ?? '')));
  // CPU, lock, line and text: metrics without time are not there.
  await expect.poll(rows).toEqual([
    ['50 ms', '50 ms', '', '', '', 'lines that the build does not name'],
    ['./walk.c read from /src/walk.c; some lines have no text here'],
    ['', '', '', '', '2', 'int walk(void) {'],
    ['300 ms', '300 ms', '', '', '3', HOSTILE],
    ['', '', '', '', '4', '}'],
    ['', '…', ''],
    ['', '', '100 ms', '100 ms', '40', ''],
  ]);
  expect(await source.locator('tr.hot').count()).toBe(2);
  expect(await source.textContent()).toContain('1 line with time has no text');
  // The filter holds here, too.
  await page.locator('#filters').getByLabel('name').fill('another');
  await expect.poll(() => source.count()).toBe(0);
  await page.locator('#filters').getByLabel('name').fill('one');
  await expect.poll(() => source.locator('tr.hot').count()).toBe(2);
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
