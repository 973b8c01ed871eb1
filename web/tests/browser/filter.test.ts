import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { headOf, launch, open, reportHtml, reportUrl, variant } from './report.ts';

let browser: Browser;
const head = headOf(reportHtml);
const levels = head.run.levels.filter((level) => level.purpose === 'sweep');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const bar = (page: Page) => page.locator('#filters');
const filterText = (page: Page) => bar(page).locator('.summary').textContent();
const graph = (page: Page) => page.locator('#flame');

/** A flame graph of one function at two levels, with samples of three threads: microseconds by thread and second. */
function reportOf(note = '') {
  const [tree, first, second, samples] = [700_000, 700_001, 700_002, 700_003];
  const origin = head.origin_ns;
  const [a, b] = levels;
  if (!a || !b) throw new Error('the report has fewer than two levels');
  return variant(
    (one) => {
      one.explanation.about = a.index;
      one.flame = {
        metrics: ['cpu', 'lock', 'io', 'other'],
        knows_lines: false,
        threads: ['connection', 'background'],
        modules: ['', 'mariadbd'],
        names: [['<Total>', 0], ['work', 1]],
        nodes: 2,
        block: tree,
        folded: 0,
        folded_below: 0.0001,
        observer_share: 0,
        levels: [a, b].map((level, at) => ({
          level: level.index,
          seconds: 2,
          transactions: 1000,
          block: at === 0 ? first : second,
          columns: [7000, 0, 0, 0, 4000, 0, 0, 0].map((us) => ({ total_us: us, half_us: 10, samples: 5 })),
        })),
        samples: {
          roles: ['connection', 'purge'],
          lines: false,
          threads: [[71, 'one'], [72, 'two'], [80, 'ib_purge']],
          statements: ['COMMIT', 'SELECT ?'],
          edges_ns: [0, 1, 2, 3, 4].map((s) => origin + s * 1e9),
          levels: [[0, 2], [2, 4]],
          step_s: 1,
          rows: 6,
          block: samples,
          note,
        },
      };
    },
    undefined,
    {
      [tree]: [[0, 1], [0, 1]],
      [first]: [[0, 7000], [0, 0], [0, 0], [0, 0], [0, 4000], [0, 0], [0, 0], [0, 0]],
      [second]: [[0, 48000], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]],
      // By whom: thread 71 for connection 5 with a COMMIT, with a SELECT, and with none known; 72 for 6; the purge.
      [samples]: [
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 2],
        [5, 5, NaN, 6, NaN],
        [0, 1, NaN, NaN, NaN],
        [0, 0, 0, 0, 0, 0],
        [0, 1, 2, 3, 3, 4],
        [0, 1, 2, 0, 3, 1],
        [1, 1, 1, 1, 1, 1],
        [1000, 2000, 16000, 4000, 32000, 4000],
        [100, 100, 100, 100, 100, 100],
        [1, 2, 3, 4, 5, 6],
      ],
    },
  );
}

const total = (page: Page) => graph(page).locator('.axis').textContent();

test('every filter selects its own part of the time, applies to all views, and is written as text', async () => {
  const changed = reportOf();
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  await expect.poll(() => total(page)).toContain('7 ms');
  await bar(page).getByLabel('connection', { exact: true }).fill('5');
  await expect.poll(() => total(page)).toContain('3 ms');
  expect(await filterText(page)).toContain('all threads, at work for connection 5, over the whole run');
  await bar(page).getByLabel('statement', { exact: true }).fill('commit');
  await expect.poll(() => total(page)).toContain('1 ms');
  expect(await graph(page).textContent()).toContain('known for 43 % of the time that meets the other conditions');
  await bar(page).getByRole('button', { name: 'reset' }).click();
  await expect.poll(() => total(page)).toContain('7 ms');
  await bar(page).getByLabel('thread', { exact: true }).fill('72');
  await expect.poll(() => total(page)).toContain('4 ms');
  await bar(page).getByLabel('thread', { exact: true }).fill('');
  // As in the terminal: who names threads asks for those of any role.
  await bar(page).getByLabel('name', { exact: true }).fill('PURGE');
  await expect.poll(() => total(page)).toContain('4 ms');
  expect(await graph(page).textContent()).toContain('from 6 samples');
  await bar(page).getByLabel('name', { exact: true }).fill('');
  await bar(page).getByLabel('role').selectOption('connection');
  await expect.poll(() => total(page)).toContain('7 ms');
  await bar(page).getByLabel('role').selectOption('');
  expect(await bar(page).getByRole('button', { name: 'reset' }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a window that is typed is that of the whole page, and reset leaves it', async () => {
  const changed = reportOf();
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  await expect.poll(() => total(page)).toContain('7 ms');
  const window = bar(page).getByLabel('window');
  await window.fill('1s-3s');
  await window.press('Enter');
  // 2 ms of second 1 and 16 ms of second 2, of connections.
  await expect.poll(() => total(page)).toContain('18 ms');
  expect(await filterText(page)).toContain('from 0:01.0 to 0:03.0');
  expect(await graph(page).locator('h2').textContent()).toContain('0:01.0 to 0:03.0');
  await window.fill('3-1');
  await window.press('Enter');
  await expect.poll(() => filterText(page)).toContain('“3-1” is not a window. Enter two times');
  await bar(page).getByRole('button', { name: 'reset' }).click();
  await expect.poll(() => total(page)).toContain('7 ms');
  expect(await filterText(page)).toContain('over the whole run');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('what is not a number is reported, and a note names what a page that would be too large leaves out', async () => {
  const changed = reportOf('To keep this page small, windows of its stacks are in steps of 10 s.');
  const { page } = await open(browser, `${changed.url}#functions`);
  await bar(page).getByLabel('thread', { exact: true }).fill('12, ab');
  await expect.poll(() => filterText(page)).toContain('“ab” is not a number');
  expect(await graph(page).textContent()).toContain('in steps of 10 s');
  await page.close();
  changed.remove();
});

/** The program whose numbers the page must match; CI sets it. */
const whyso = process.env['WHYSO'];

describe.runIf(whyso)('the terminal says the same', () => {
  const run = dirname(process.env['REPORT_HTML'] ?? '');
  const level = levels.at(-1)!;
  const samples = head.flame?.samples;
  const tid = String(samples?.threads[0]?.[0] ?? '');

  /** Milliseconds on CPUs. */
  function samplesOf(args: string[]): number {
    const out = execFileSync(whyso as string, ['functions', run, '--by', 'cpu', '--json', ...args], { encoding: 'utf8' });
    const { total } = JSON.parse(out) as { total: { cpu: { exclusive_ns: number } } };
    return total.cpu.exclusive_ns / 1e6;
  }

  async function totalMs(page: Page): Promise<number> {
    const text = (await total(page)) ?? '';
    const [, number = '', unit] = /([\d,.]+) (µs|ms|s)\b/.exec(text) ?? [];
    return Number(number.replaceAll(',', '')) * (unit === 's' ? 1000 : unit === 'ms' ? 1 : 0.001);
  }

  const cases: [string, string[], (page: Page) => Promise<void>][] = [
    ['role', ['--role', 'connection'], async (page) => void (await bar(page).getByLabel('role').selectOption('connection'))],
    ['thread', ['--thread', tid], (page) => bar(page).getByLabel('thread', { exact: true }).fill(tid)],
  ];

  test.each(cases)('for one level by %s', async (_, args, choose) => {
    const { page, complaints } = await open(browser, `${reportUrl}#functions`);
    await graph(page).getByRole('button', { name: 'CPU' }).click();
    await graph(page).getByLabel('level of the flame graph').selectOption({ label: level.users === 1 ? '1 user' : `${level.users} users` });
    await choose(page);
    const expected = samplesOf(['--users', String(level.users), ...args]);
    await expect.poll(async () => Math.abs((await totalMs(page)) / expected - 1), { timeout: 20_000 }).toBeLessThan(0.006);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('for a window', async () => {
    const { page } = await open(browser, `${reportUrl}#functions`);
    await graph(page).getByRole('button', { name: 'CPU' }).click();
    await bar(page).getByLabel('window').fill('3s-6s');
    await bar(page).getByLabel('window').press('Enter');
    const expected = samplesOf(['--window', '3s-6s']);
    await expect.poll(async () => Math.abs((await totalMs(page)) / expected - 1), { timeout: 20_000 }).toBeLessThan(0.006);
    await page.close();
  });
});
