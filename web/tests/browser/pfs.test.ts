import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PfsColumn, PfsLines, PfsRow, PfsView } from '../../src/data/model.ts';
import { headOf, HOSTILE, launch, open, reportHtml, variant } from './report.ts';

let browser: Browser;
const [first, second] = headOf(reportHtml).run.levels.filter((level) => level.purpose === 'sweep');
if (!first || !second) throw new Error('the report has fewer than two levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const [WAITS, DIGESTS, LOCKS, AXIS, SERIES] = [620_000, 620_001, 620_002, 620_003, 620_004];
const column = (name: string, quantity: PfsColumn['quantity'], is_level = false): PfsColumn => ({ name, metric: name === 'time' ? 'time_ns' : name, quantity, is_level });
const events = [column('count', 'count'), column('time', 'time')];
const view = (name: string, line: string, block: number, columns: PfsColumn[], of_events: boolean): PfsView => ({ name, source: `pfs_${name.replace('-', '_')}`, line, about: `what ${name} are`, of_events, columns, main: 1, block });
const lines = (names: string[], levels: (PfsRow | null)[][], totals: PfsRow[], more: Partial<PfsLines> = {}): PfsLines => ({
  names, idle_names: ['idle'], observer_names: ['own'], texts: { own: 'SHOW GLOBAL STATUS' }, drawn: [], ...more,
  levels: levels.map((rows, at) => ({ rows, idle: [[5, 9e12]], total: totals[at] ?? [], left: at === 0 ? 3 : 0, left_row: [7, 1e9], idle_left: 2, observer: [[5, 9e12, 1, 0, 0]], observer_share: 0.25 })),
});

/** Ten seconds per level; 10,000 and 20,000 statements, 1,000 and 2,000 transactions. */
function withViews() {
  const blocks: [number, PfsLines][] = [
    [WAITS, lines(['wait/a', 'wait/b', 'wait/c'], [[[1000, 4e9], [9000, 1e9], null], [[1000, 2e9], null, [10, 6e9]]], [[10_007, 6e9], [1010, 8e9]], { drawn: ['wait/a'] })],
    [DIGESTS, lines(['s:1'], [[[100, 5e9, 7, 0]], [[100, 5e9, 7, 0]]], [[100, 5e9, 7, 0], [100, 5e9, 7, 0]], { texts: { 's:1': HOSTILE } })],
    [LOCKS, lines(['wait/lock'], [[[1000, 0, 2, 0.9, 0.61]], [[1000, 0, 2, 0.5, 1]]], [[1000, 0, 2, null, null], [1000, 0, 2, null, null]])],
  ];
  const from = first?.window.begin_ns ?? 0;
  const report = variant(
    (head) => {
      head.explanation.about = first?.index ?? 0;
      const level = (index: number, factor: number) => ({ level: index, seconds: 10, statements: 10_000 * factor, transactions: 1000 * factor });
      head.pfs = {
        levels: [level(first?.index ?? 0, 1), level(second?.index ?? 1, 2)],
        views: [
          view('waits', 'event', WAITS, events, true),
          view('digests', 'digest', DIGESTS, [...events, column('examined', 'count'), column('errors', 'count')], false),
          view('lock-instances', 'lock', LOCKS, [...events, column('instances', 'count', true), column('busiest has', 'share', true), column('evenness', 'share', true)], false),
        ],
      };
      head.axes.push({ block: AXIS, slot: 0 });
      head.series.push({ host: 'server', source: 'pfs_waits', metric: 'time_ns', instance: 'wait/a', kind: 'counter', unit: 'ns', axis: head.axes.length - 1, block: SERIES, slot: 0, form: 'samples', flat: false });
    },
    undefined,
    // Every second half a second more is waited.
    { [AXIS]: [Array.from({ length: 9 }, (_, at) => Math.round((from - headOf(reportHtml).origin_ns) / 1000) + at * 1_000_000)], [SERIES]: [Array.from({ length: 9 }, (_, at) => at * 5e8)] },
  );
  const file = fileURLToPath(report.url);
  const elements = blocks.map(([number, object]) => `<script type="application/octet-stream;base64" id="whyso-block-${number}">${deflateRawSync(Buffer.from(JSON.stringify(object))).toString('base64')}</script>`);
  writeFileSync(file, readFileSync(file, 'utf8').replace('</body>', () => `${elements.join('')}</body>`));
  return report;
}

const rows = (page: Page, table: string) => page.locator(`#pfs table.${table} tbody tr`).evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent?.trim() ?? '')));

for (const scheme of ['light', 'dark'] as const) {
  test(`the views of the Performance Schema stand by any column, are divided and compared, and are drawn over time, ${scheme}`, async () => {
    const changed = withViews();
    const { page, complaints } = await open(browser, `${changed.url}#counters`, 1280, scheme);
    const section = page.locator('#pfs');
    // count/s, /statement, /transaction, ms/s, µs/statement, µs/transaction, mean µs, of time
    await expect.poll(() => rows(page, 'lines')).toEqual([
      ['<Total>', '1,001', '1', '10', '600', '600', '6,000', '600', '100 %'],
      ['wait/a', '100', '0.1', '1', '400', '400', '4,000', '4,000', '67 %'],
      ['wait/b', '900', '0.9', '9', '100', '100', '1,000', '111', '17 %'],
      ['3 others', '0.7', '0.0007', '0.007', '100', '100', '1,000', '142,857', '17 %'],
    ]);
    expect((await rows(page, 'idle'))[0]?.at(-1)).toBe('–');
    expect((await rows(page, 'observer'))[0]?.slice(0, 2)).toEqual(['SHOW GLOBAL STATUS', '0.5']);
    expect(await section.textContent()).toContain("Statements of whyso's own connections, which watched the server: 25 % of the time; not in the total");
    await section.getByRole('button', { name: 'count/s' }).click();
    await expect.poll(async () => (await rows(page, 'lines'))[1]?.[0]).toBe('wait/b');
    const over = section.getByRole('group', { name: 'Time waited per second by event, over time' });
    await expect.poll(() => over.locator('li').allTextContents()).toEqual(['wait/a mean 500 ms/s']);
    expect(await over.locator('canvas').count()).toBe(1);

    await section.getByLabel('level to compare the Performance Schema with').selectOption('1');
    // A transaction: 4 s/1,000 against 2 s/2,000, 1 s/1,000 against none, none against 6 s/2,000.
    await expect.poll(() => rows(page, 'differences')).toEqual([
      ['wait/a', '4 ms', '1 ms', '+3 ms'],
      ['wait/c', '0 ms', '3 ms', '−3 ms'],
      ['wait/b', '1 ms', '0 ms', '+1 ms'],
    ]);
    await section.getByRole('button', { name: 'per second' }).click();
    await section.getByLabel('number that is compared').selectOption('0');
    await expect.poll(async () => (await rows(page, 'differences'))[0]).toEqual(['wait/b', '900', '0', '+900']);
    await section.getByLabel('level to compare the Performance Schema with').selectOption('-1');

    await section.getByLabel('view of the Performance Schema').selectOption('1');
    await section.getByRole('button', { name: 'per transaction' }).click();
    // Errors counted nothing.
    await expect.poll(async () => (await rows(page, 'lines'))[1]).toEqual([HOSTILE, '0.1', '5 ms', '0.007']);
    await section.getByLabel('view of the Performance Schema').selectOption('2');
    await expect.poll(async () => (await rows(page, 'lines'))[1]).toEqual(['wait/lock', '1', '2', '90 %', '61 %']);
    await section.getByLabel('level of the Performance Schema').selectOption('1');
    await expect.poll(async () => (await rows(page, 'lines'))[1]?.at(-1)).toBe('100 %');
    // The level is the whole page's.
    expect(await page.locator('.levels tbody tr').nth(1).getAttribute('class')).toContain('chosen');
    await section.getByLabel('find lines of the Performance Schema').fill('nothing like it');
    await expect.poll(() => section.textContent()).toContain('No line shown here contains this text.');
    expect(await page.evaluate(() => 'broken' in window)).toBe(false);
    expect(complaints).toEqual([]);
    await page.close();
    changed.remove();
  });
}

test('a report without the Performance Schema has no such section', async () => {
  const changed = variant((head) => delete head.pfs);
  const { page, complaints } = await open(browser, `${changed.url}#counters`);
  expect(await page.locator('#pfs').count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
