import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOSTILE, launch, openPage } from './report.ts';
import { cellsOf, CURVE, DURABILITY, LATENCY, pageOf, RESIZED, type TestStudy } from './study.ts';

let browser: Browser;
let durability: { url: string; remove: () => void };

beforeAll(async () => {
  browser = await launch();
  durability = pageOf(DURABILITY);
});

afterAll(async () => {
  await browser.close();
  durability.remove();
});

describe.each([
  [1280, 'light'],
  [2560, 'dark'],
] as const)('%i pixels wide and %s', (width, scheme) => {
  test('a study says its answer, draws every variant, and has every table', async () => {
    const { page, complaints } = await openPage(browser, durability.url, width, scheme);
    await page.locator('svg .mark').first().waitFor();
    expect(await page.locator('h1').textContent()).toBe(DURABILITY.spec.title);
    expect(await page.locator('.found li').first().textContent()).toMatch(/^At \d+ users? \((mariadb-11\.8|mysql-sid)\), flush 2, (no )?doublewrite is [\d.]+ % faster than flush 1, doublewrite \([\d.]+ %? ?to [\d.]+ %\)\.$/);
    expect(await page.locator('.warn').textContent()).toContain('The machine differs from itself');
    const charts = page.locator('section[aria-labelledby="values"] svg[role="img"]');
    expect(await charts.count()).toBe(2);
    for (let chart = 0; chart < 2; chart++) {
      for (const { name } of DURABILITY.spec.variant) {
        const line = charts.nth(chart).locator(`[data-line="${name}"]`);
        expect(await line.locator('.mark').count(), name).toBe(DURABILITY.spec.users.length);
        expect(await line.locator('.whisker').count(), name).toBe(DURABILITY.spec.users.length);
      }
    }
    // Shared scales: the same ticks.
    const ticks = (chart: number) => charts.nth(chart).locator('text.end').allTextContents();
    expect(await ticks(0)).toEqual(await ticks(1));
    const compared = page.locator('section[aria-labelledby="compared"]');
    expect(await compared.locator('td.plot .interval').count()).toBeGreaterThanOrEqual((cellsOf(DURABILITY.spec).length - 2) * DURABILITY.spec.users.length);
    expect(await compared.locator('tr.muted td.words').first().textContent()).toContain('*');
    const titles = await page.locator('section[aria-labelledby="tables"] h3').allTextContents();
    for (const title of ['Compared · mysql-sid', 'Step by step: what each adds to the one before', 'Where throughput peaks, and what holds it there']) expect(titles).toContain(title);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe(scheme === 'dark' ? 'rgb(20, 24, 28)' : 'rgb(253, 253, 252)');
    expect(complaints).toEqual([]);
    await page.close();
  });
});

test('by keyboard: a chart reads its values, a name lights its line, the recordings open', async () => {
  const { page } = await openPage(browser, durability.url);
  const chart = page.locator('svg[role="img"]').first();
  await chart.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('.tip b').textContent()).toBe('8 users');
  expect(await page.locator('.tip td.name').allTextContents()).toEqual(DURABILITY.spec.variant.map((one) => one.name));
  await page.keyboard.press('Escape');
  expect(await page.locator('.tip').count()).toBe(0);
  await page.getByRole('button', { name: 'flush 2, doublewrite' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'light' }).or(page.getByRole('button', { name: 'dark', exact: true })).focus();
  expect(await chart.locator('g.dim').count()).toBe(3);
  await page.locator('summary').focus();
  await page.keyboard.press('Enter');
  const recording = page.locator('details a', { hasText: 'runs/20260101-120000-77' });
  expect(await recording.isVisible()).toBe(true);
  expect(await recording.getAttribute('href')).toBe('runs/20260101-120000-77/');
  await page.close();
});

test('a course has a panel for each measure, and its changes as lines with their labels', async () => {
  const report = pageOf(RESIZED);
  const { page, complaints } = await openPage(browser, report.url, 1280, 'dark');
  const chart = page.locator('section[aria-labelledby="courses"] svg[role="img"]').first();
  await chart.waitFor();
  expect(await chart.locator('text.title').allTextContents()).toEqual(['transactions/s', 'buffer pool hits, % (does not begin at 0)', 'threads running', 'seconds since measuring began']);
  for (const { name } of RESIZED.spec.variant) expect(await chart.locator(`[data-line="${name}"] .stroke`).count(), name).toBe(3);
  expect(await chart.locator('text.label').allTextContents()).toEqual(['innodb_buffer_pool_size = 128M (smaller)', 'innodb_buffer_pool_size = 2G (larger)']);
  expect(complaints).toEqual([]);
  await page.close();
  report.remove();
});

test('a curve has a band, its counters, and a logarithmic axis in bytes', async () => {
  const report = pageOf(CURVE);
  const { page, complaints } = await openPage(browser, report.url);
  const chart = page.locator('section[aria-labelledby="curves"] svg[role="img"]');
  await chart.waitFor();
  const titles = await chart.locator('text.title').allTextContents();
  expect(titles.map((title) => title.replace(' (logarithmic)', ''))).toEqual(['execution, ms', 'Sort_merge_passes/execution', 'Sort_rows/execution', 'sort_buffer_size, bytes']);
  expect(titles.at(-1)).toContain('logarithmic');
  expect((await chart.locator('text.middle').allTextContents())[0]).toBe('32 KiB');
  for (const { name } of CURVE.spec.variant) expect((await chart.locator(`[data-line="${name}"] .band`).first().getAttribute('d'))?.length, name).toBeGreaterThan(100);
  expect(complaints).toEqual([]);
  await page.close();
  report.remove();
});

test('with one number of users values stand in rows, and what is unfinished is called so', async () => {
  const report = pageOf(LATENCY);
  const { page, complaints } = await openPage(browser, report.url);
  const rows = page.locator('section[aria-labelledby="values"] tbody tr');
  expect(await rows.count()).toBe(LATENCY.spec.variant.length);
  expect(await page.locator('section[aria-labelledby="compared"] .sides span').allTextContents()).toEqual(['← lower, which is better', 'higher, which is worse →']);
  expect(await page.locator('header').textContent()).toContain('36 of 42 starts are done');
  expect(await page.locator('.found li').first().textContent()).toContain('which is worse');
  expect(complaints).toEqual([]);
  await page.close();
  report.remove();
});

test('the texts of a study are never markup', async () => {
  const [first, ...rest] = DURABILITY.spec.variant;
  const spec = { ...DURABILITY.spec, title: HOSTILE, question: HOSTILE, baseline: HOSTILE, steps: [], repeats: 2, variant: [{ ...first, name: HOSTILE }, ...rest] };
  const hostile: TestStudy = { ...DURABILITY, spec, notes: [HOSTILE], suspect: () => HOSTILE };
  const report = pageOf(hostile);
  const { page, complaints } = await openPage(browser, report.url);
  expect(await page.locator('h1').textContent()).toBe(HOSTILE);
  expect(await page.title()).toContain(HOSTILE);
  expect(await page.locator('section[aria-labelledby="values"] button').first().textContent()).toContain(HOSTILE);
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.evaluate(() => (window as unknown as Record<string, unknown>)['broken'])).toBe(undefined);
  expect(complaints).toEqual([]);
  await page.close();
  report.remove();
});
