/** Comparisons of runs and windows in `whyso serve`. */

import { cpSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, ServeSession, exportAs, shown, toFirstChart } from './session.ts';

/** Another start of the same workload, with another setting. */
const OTHER = dirname(resolve(process.env['OTHER_REPORT_HTML'] ?? ''));
const other = basename(OTHER);
const copy = `${ID}-again`;

let session: ServeSession;

beforeAll(async () => {
  if (!process.env['OTHER_REPORT_HTML']) throw new Error('OTHER_REPORT_HTML must name the report of a second run: see scripts/test-page.sh');
  session = await ServeSession.start([ID, copy], (_folder, runs) => cpSync(OTHER, join(runs, other), { recursive: true }));
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

/** The first chart has a line of each run. */
const drawn = (page: Page) => toFirstChart(page, 2);
const table = (page: Page, title: string) => page.locator('section', { has: page.getByRole('heading', { name: title }) }).first();

describe('a comparison of two runs', () => {
  for (const [width, scheme] of [[1280, 'dark'], [2560, 'light']] as const) {
    it(`shows what is faster, what was set and what differs, at ${width} pixels, ${scheme}`, async () => {
      const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`, width, scheme);
      await drawn(page);
      await page.locator('#flame canvas').waitFor();
      expect(await table(page, 'Settings and facts that differ').textContent()).toContain('innodb_flush_log_at_trx_commit');
      expect(await table(page, 'What differs most at').locator('tbody tr').count()).toBeGreaterThan(3);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    });
  }

  it('draws what differs for both, on one scale, and one level of both', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`);
    await drawn(page);
    const before = await page.locator('.chart').count();
    await table(page, 'What differs most at').getByRole('button', { name: 'draw' }).first().click();
    expect(await page.locator('.chart').count()).toBe(before + 1);
    const read = page.waitForResponse((response) => response.url().includes('/series?') && response.url().includes(other));
    await page.getByRole('group', { name: 'what of each run is drawn' }).getByRole('button', { name: 'all', exact: true }).click();
    expect((await read).status()).toBe(200);
    await drawn(page);
    expect(complaints).toEqual([]);
  });

  for (const width of [1280, 800]) {
    it(`draws runs side by side on one value axis, at ${width} pixels, and again by the address`, async () => {
      const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`, width);
      await drawn(page);
      await page.getByRole('button', { name: 'side by side' }).click();
      const panels = page.locator('.chart').first().locator('figure');
      await panels.nth(1).locator('b', { hasText: 'mean' }).waitFor();
      expect(await panels.count()).toBe(2);
      const captions = await panels.locator('figcaption').allTextContents();
      expect(captions[0]).toContain(`first: ${ID}`);
      expect(captions[1]).toContain('innodb_flush_log_at_trx_commit=0');
      // Both plots are as wide; only the first has labels of values.
      const boxes = await panels.locator('.u-over').evaluateAll((overs) => overs.map((over) => over.getBoundingClientRect().width));
      expect(Math.abs((boxes[0] ?? 0) - (boxes[1] ?? 1e3))).toBeLessThan(2);
      const picture = await page.locator('.chart').first().evaluate((chart) => chart.classList.contains('wide'));
      expect(picture).toBe(true);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
      const again = await session.at(new URL(page.url()).pathname + new URL(page.url()).search, width);
      await again.page.locator('.chart figure').nth(1).waitFor();
      expect([...complaints, ...again.complaints]).toEqual([]);
    });
  }

  it('draws a line for each day by the time of day, and each run where it was in time', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`);
    await drawn(page);
    await page.getByRole('button', { name: 'time of day' }).click();
    const names = page.locator('.chart').first().locator('.legend .name');
    await names.filter({ hasText: ' · first: ' }).first().waitFor();
    expect((await names.allTextContents()).every((name) => /^\w{3} \d+ \w{3,4} · (first|second): /.test(name))).toBe(true);
    expect(new URL(page.url()).searchParams.get('axis')).toBe('day');
    const plot = page.locator('.chart .u-over').first();
    await plot.hover({ position: { x: 200, y: 40 } });
    await page.locator('#explorer .muted', { hasText: /^\d\d:\d\d:\d\d$/ }).waitFor();
    await page.getByRole('button', { name: 'date and time' }).click();
    await page.waitForURL((url) => url.searchParams.get('axis') === 'wall');
    await names.filter({ hasText: /^second: / }).first().waitFor();
    expect(complaints).toEqual([]);
  });

  it('is shown again by the link of one of its charts', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`);
    await drawn(page);
    await page.getByRole('group', { name: 'what of each run is drawn' }).getByRole('button', { name: 'all', exact: true }).click();
    const title = (await page.locator('.chart h3').first().textContent()) ?? '';
    await exportAs(page, 'copy link');
    await page.locator('.export summary', { hasText: 'link copied' }).first().waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    const again = await session.at(link.slice(session.origin.length));
    await drawn(again.page);
    expect(await again.page.locator('.chart h3').allTextContents()).toEqual([title]);
    expect(await again.page.locator('[aria-pressed=true]', { hasText: 'all' }).count()).toBe(1);
    expect([...complaints, ...again.complaints]).toEqual([]);
  });

  it('colours the functions of the second by what they have more or less of than the first', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}&second=${other}`);
    const flame = page.locator('#flame');
    await flame.locator('canvas').waitFor();
    // At the level at which both are compared.
    await page.waitForFunction(() => /from [\d.]+ to [\d.]+ s/.test(document.querySelector('#flame')?.textContent ?? ''));
    expect(await flame.getByLabel('level of the flame graph').locator('option:checked').textContent()).toContain(other);
    expect(await flame.getByLabel('level to compare with').locator('option:checked').textContent()).toContain(ID);
    expect(await flame.getByRole('group', { name: 'compared by' }).count()).toBe(1);
    await flame.locator('[role=application]').focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await flame.textContent()).toContain(`against ${ID} from`);
    expect(complaints).toEqual([]);
  });

  it('says that a copy is no second start', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}&second=${copy}`);
    await page.locator('[role=alert]').first().waitFor();
    expect(await page.locator('[role=alert]').first().textContent()).toContain('named twice');
    expect(complaints.filter((complaint) => !complaint.includes('status of 400'))).toEqual([]);
  });
});

describe('a comparison of two windows', () => {
  it('is begun from a run by two steps, and its address has them', async () => {
    const { page, complaints } = await session.runPage();
    const levels = page.locator('.window button');
    await levels.filter({ hasText: /^1$/ }).click();
    await page.getByRole('button', { name: 'compare…' }).click();
    await levels.filter({ hasText: /^4$/ }).click();
    expect(await shown(page)).toBe('the level of 4 users');
    await page.getByRole('link', { name: /^compare with / }).click();
    await page.getByRole('heading', { name: 'Comparison' }).waitFor();
    expect(decodeURIComponent(page.url())).toMatch(/first=.+@[\d.]+-[\d.]+&second=.+@[\d.]+-[\d.]+/);
    await drawn(page);
    expect(await table(page, 'What differs most between the windows').locator('tbody tr').count()).toBeGreaterThan(3);
    await page.locator('#flame canvas').waitFor();
    expect(await page.locator('#flame').textContent()).toContain(`than at ${ID} from`);
    const again = await session.at(new URL(page.url()).pathname + new URL(page.url()).search);
    await drawn(again.page);
    expect([...complaints, ...again.complaints]).toEqual([]);
  });

  it('takes another window that is typed, and refuses what is none', async () => {
    const { page, complaints } = await session.at(`/compare?first=${ID}@0-3&second=${ID}@5-8`);
    await drawn(page);
    const field = page.getByLabel(`window of ${ID}`).first();
    await field.fill('half past ten');
    await page.keyboard.press('Enter');
    expect(page.url()).toContain('0-3');
    await field.fill('0:01-0:04.5');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => decodeURIComponent(url.search).includes('@1-4.5'));
    await drawn(page);
    expect(complaints).toEqual([]);
  });

  it('says that windows overlap', async () => {
    const { page } = await session.at(`/compare?first=${ID}@0-5&second=${ID}@3-8`);
    await page.locator('[role=alert]').first().waitFor();
    expect(await page.locator('[role=alert]').first().textContent()).toContain('overlap');
  });
});
