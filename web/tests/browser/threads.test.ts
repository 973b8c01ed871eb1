import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { headOf, HOSTILE, launch, open, reportHtml, reportUrl, variant, type TestThread } from './report.ts';

let browser: Browser;
const head = headOf(reportHtml);
const levels = head.run.levels.filter((level) => level.purpose === 'sweep');
const [first, second] = levels;
if (!first || !second) throw new Error('the report has fewer than two levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const STATES = ['cpu', 'lock', 'net_receive'];
/** Times of the snapshots, at both ends of the first two levels' windows. */
const SNAPSHOTS = [first.window.begin_ns, first.window.end_ns, second.window.begin_ns, second.window.end_ns];

/** In the first window the first thread works and the others wait; in the last the last works. */
function threadsOf(count: number): { snapshots_ns: number[]; states: string[]; threads: TestThread[] } {
  const threads = Array.from({ length: count }, (_, place): TestThread => {
    const isFirst = place === 0;
    const isLast = place === count - 1;
    return {
      name: isFirst ? 'ib_purge' : `one_connection_${place}`,
      role: isFirst ? 'purge' : 'connection',
      seconds: [isFirst ? [3, 1, 0] : [0, 1, 3], [0, 0, 1], isLast ? [2, 0, 2] : [0, 4, 0]],
      ...(isFirst ? {} : { statement: place % 2 === 0 ? 'COMMIT' : 'SELECT c FROM sbtest WHERE id=?' }),
    };
  });
  return { snapshots_ns: SNAPSHOTS, states: STATES, threads };
}

const rows = (section: Locator) => section.locator('tbody tr');
const cellsOf = async (row: Locator) => (await row.locator('td').allTextContents()).map((text) => text.trim());
const sum = (section: Locator) => section.locator('#threads-sum h3').textContent();

test('a traced run shows its own threads, and they add up', async () => {
  expect(head.threads, 'the report holds no threads: can this machine trace?').toBeDefined();
  const { page, complaints } = await open(browser, `${reportUrl}#threads`);
  const section = page.locator('#threads');
  await expect.poll(() => rows(section).count()).toBeGreaterThan(3);
  expect(await section.locator('tbody').textContent()).toContain('connection');
  const shares = await section.locator('.bar i').evaluateAll((all) => all.map((one) => parseFloat((one as HTMLElement).style.width)));
  expect(shares.reduce((all, value) => all + value, 0)).toBeGreaterThan(99);
  expect(shares.reduce((all, value) => all + value, 0)).toBeLessThan(100.01);
  const [count] = /^[\d,]+/.exec((await section.locator('.count').textContent()) ?? '') ?? [];
  expect(await sum(section)).toBe(`Time by state of all ${count} threads`);
  expect(complaints).toEqual([]);
  await page.close();
});

test('threads are sorted by any column, by mouse and by keyboard', async () => {
  const changed = variant(() => {}, threadsOf(5));
  const { page } = await open(browser, `${changed.url}#threads`);
  const section = page.locator('#threads');
  const order = async () => (await section.locator('tbody td:nth-child(2)').allTextContents()).map(Number);
  await expect.poll(order).toEqual([1000, 1004, 1001, 1002, 1003]);
  const lock = section.getByRole('button', { name: 'lock' });
  await lock.click();
  // The last thread alone had little of it; equals stand in the order of their numbers.
  await expect.poll(order).toEqual([1000, 1001, 1002, 1003, 1004]);
  expect(await section.locator('th[aria-sort="descending"]').textContent()).toContain('lock');
  await lock.focus();
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await order())[0]).toBe(1004);
  expect(await section.locator('th[aria-sort="ascending"]').textContent()).toContain('lock');
  await section.getByRole('button', { name: 'name' }).press('Space');
  await expect.poll(order).toEqual([1000, 1001, 1002, 1003, 1004]);
  // A thread without a statement comes last either way.
  const statement = section.getByRole('button', { name: 'statement' });
  await statement.click();
  await expect.poll(async () => (await order()).at(-1)).toBe(1000);
  await statement.click();
  await expect.poll(async () => (await order()).at(-1)).toBe(1000);
  await page.close();
  changed.remove();
});

test('threads are filtered by role and by what is typed, and only picked ones are summed', async () => {
  const changed = variant(() => {}, threadsOf(9));
  const { page, complaints } = await open(browser, `${changed.url}#threads`);
  const section = page.locator('#threads');
  const bar = page.locator('#filters');
  await expect.poll(() => rows(section).count()).toBe(9);
  expect(await sum(section)).toBe('Time by state of all 9 threads');
  await bar.getByLabel('role').selectOption('purge');
  await expect.poll(() => rows(section).count()).toBe(1);
  expect(await sum(section)).toBe('Time by state of the thread that matches the filter');
  await bar.getByLabel('role').selectOption('');
  await bar.getByLabel('statement', { exact: true }).fill('commit');
  await expect.poll(() => rows(section).count()).toBe(4);

  // All that match the filter, by keyboard; then one more by mouse.
  await section.getByRole('checkbox', { name: 'pick all threads' }).focus();
  await page.keyboard.press('Space');
  await expect.poll(() => sum(section)).toBe('Time by state of 4 picked threads');
  await bar.getByLabel('statement', { exact: true }).fill('');
  await section.getByRole('checkbox', { name: 'pick thread 1000' }).check();
  await expect.poll(() => sum(section)).toBe('Time by state of 5 picked threads');
  expect(await section.getByRole('checkbox', { name: 'pick all threads' }).evaluate((one) => (one as HTMLInputElement).indeterminate)).toBe(true);
  await section.getByRole('button', { name: 'pick none' }).click();
  await section.getByRole('checkbox', { name: 'pick thread 1000' }).check();
  // 3 of its 9 seconds were on a CPU, 5 on locks.
  await expect.poll(() => section.locator('.bar').getAttribute('aria-label')).toBe('time by state: cpu 33 %, lock 56 %, net receive 11 %');
  expect(await section.locator('#threads-sum svg .stretch').count()).toBe(SNAPSHOTS.length - 1);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('the table follows the window of the page, and says which window it covers', async () => {
  const changed = variant(() => {}, threadsOf(4));
  const { page } = await open(browser, `${changed.url}#threads`);
  const section = page.locator('#threads');
  const window = () => section.locator('.window').first().textContent();
  await expect.poll(window).toMatch(/^from /);
  const whole = await window();
  expect(await cellsOf(rows(section).first())).toEqual(['', '1000', 'ib_purge', 'purge', '33', '56', '11', '', '50', '']);

  const row = page.getByRole('button', { name: String(first.users), exact: true }).first();
  await row.press('Enter');
  await expect.poll(window).not.toBe(whole);
  expect(await cellsOf(rows(section).first())).toEqual(['', '1000', 'ib_purge', 'purge', '75', '25', '', '', '50', '']);
  const length = (first.window.end_ns - first.window.begin_ns) / 1e9;
  const [from, to] = ((await window()) ?? '').match(/\d+:\d\d\.\d/g)?.map((text) => Number(text.split(':')[0]) * 60 + Number(text.split(':')[1])) ?? [];
  expect(Math.abs((to ?? 0) - (from ?? 0) - length)).toBeLessThan(0.21);

  // A stretch of the chart beneath is a window of its own.
  await section.locator('#threads-sum svg .stretch').last().locator('rect').first().click();
  await expect.poll(async () => (await cellsOf(rows(section).first()))[1]).toBe('1003');
  expect((await cellsOf(rows(section).first())).slice(4, 7)).toEqual(['50', '', '50']);
  await page.close();
  changed.remove();
});

test('a thousand threads are all counted, and drawn on request', async () => {
  const changed = variant(() => {}, threadsOf(1000));
  const { page, complaints } = await open(browser, `${changed.url}#threads`);
  const section = page.locator('#threads');
  await expect.poll(() => rows(section).count()).toBe(50);
  expect(await sum(section)).toBe('Time by state of all 1,000 threads');
  await section.getByRole('button', { name: 'show all 1,000' }).click();
  await expect.poll(() => rows(section).count()).toBe(1000);
  await section.getByRole('checkbox', { name: 'pick all threads' }).check();
  await expect.poll(() => sum(section)).toBe('Time by state of 1,000 picked threads');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('names and statements of threads are text, and nothing overflows', async () => {
  const hostile = threadsOf(3);
  for (const thread of hostile.threads) [thread.name, thread.statement] = [HOSTILE, HOSTILE.repeat(20)];
  const changed = variant(() => {}, hostile);
  const { page, complaints } = await open(browser, `${changed.url}#threads`);
  await expect.poll(() => rows(page.locator('#threads')).count()).toBe(3);
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a run that was not traced has no empty table of threads', async () => {
  const changed = variant((one) => {
    delete one.threads;
  });
  const { page } = await open(browser, `${changed.url}#threads`);
  expect(await page.locator('#threads').count()).toBe(0);
  await page.close();
  changed.remove();
});

test('a load that another program drove is shown in requests, without unknown columns', async () => {
  const changed = variant((one) => {
    for (const level of one.run.levels) {
      const unknown = { p50: 0, p95: 0, p99: 0, p999: 0, max: 0 };
      level.result.pacing = { loop: 'recorded' };
      level.result.latency_ms = { ...level.result.latency_ms, ...unknown };
    }
  });
  const { page, complaints } = await open(browser, `${changed.url}#threads`);
  const table = page.locator('section', { has: page.getByRole('heading', { name: 'Levels', exact: true, includeHidden: true }) });
  const text = (await table.textContent()) ?? '';
  expect(text).toContain('requests/s');
  for (const absent of ['p95', 'errors', 'µs/query', 'transactions']) expect(text, absent).not.toContain(absent);
  expect(await page.locator('#scale-title ~ * svg text', { hasText: /^p99$/ }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
