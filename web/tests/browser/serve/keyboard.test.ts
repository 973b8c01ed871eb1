/** A run of `whyso serve` by the keyboard alone. */

import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, ServeSession, bytesOf, shown, toFirstChart } from './session.ts';

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID]);
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

/** This many steps of Tab reach anything that is near. */
const TABS_MAX = 40;

/** Presses Tab until the target has the focus. */
async function tabTo(page: Page, target: { name?: string; tag?: string }): Promise<void> {
  for (let step = 0; step < TABS_MAX; step++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const { activeElement: one } = document;
      return { name: one?.getAttribute('aria-label') ?? one?.textContent?.trim() ?? '', tag: one?.className ?? '' };
    });
    if (target.name !== undefined && at.name.startsWith(target.name)) return;
    if (target.tag !== undefined && at.tag.split(' ').includes(target.tag)) return;
  }
  throw new Error(`no Tab leads to ${JSON.stringify(target)}`);
}

describe('by the keyboard alone', () => {
  it('a series is found, shown otherwise, exported and put away', async () => {
    const { page, complaints } = await session.runPage();
    const charts = await page.locator('.chart').count();
    await page.keyboard.press('/');
    await page.keyboard.type('disk write_bytes');
    await page.keyboard.press('Enter');
    const chart = page.locator('.chart').first();
    await chart.locator('h3', { hasText: 'write_bytes' }).waitFor();
    await chart.locator('.legend b').first().waitFor();
    const pressed = () => chart.locator('.tools [aria-pressed=true]').allTextContents();

    for (const mode of ['per transaction', 'raw']) {
      await tabTo(page, { name: mode });
      await page.keyboard.press('Enter');
      expect(await pressed()).toContain(mode);
    }
    if ((await chart.getByRole('button', { name: 'sum' }).count()) > 0) {
      await tabTo(page, { name: 'sum' });
      await page.keyboard.press('Enter');
      await chart.locator('.legend', { hasText: 'sum of' }).waitFor();
      await page.keyboard.press('Enter');
      const top = chart.locator('.tools select');
      await page.keyboard.press('Tab');
      await page.keyboard.press('ArrowUp');
      expect(await top.inputValue()).toBe('3');
    }
    await tabTo(page, { name: 'log' });
    await page.keyboard.press('Space');
    expect(await pressed()).toContain('log');

    const coming = page.waitForEvent('download');
    await tabTo(page, { name: 'export the chart' });
    await page.keyboard.press('Enter');
    await tabTo(page, { name: 'CSV' });
    await page.keyboard.press('Enter');
    expect((await bytesOf(coming)).toString()).toContain('seconds,series');
    await page.keyboard.press('Enter');
    await tabTo(page, { name: 'SVG' });
    await page.keyboard.press('Escape');
    expect(await chart.locator('.export').getAttribute('open')).toBeNull();

    await tabTo(page, { name: 'remove the chart' });
    await page.keyboard.press('Enter');
    expect(await page.locator('.chart').count()).toBe(charts);
    expect(complaints).toEqual([]);
  });

  it('a second metric joins a chart', async () => {
    const { page } = await session.runPage();
    const chart = page.locator('.chart').first();
    await page.keyboard.press('/');
    await tabTo(page, { name: 'add a metric' });
    await page.keyboard.type('threads_connected');
    await page.keyboard.press('Enter');
    await chart.locator('.legend', { hasText: 'Threads_connected' }).waitFor();
  });

  it('the window is moved and zoomed, a level is shown, and everything again', async () => {
    const { page } = await session.runPage();
    await tabTo(page, { name: '4' });
    await page.keyboard.press('Enter');
    expect(await shown(page)).toBe('the level of 4 users');
    await page.keyboard.press('Enter');
    expect(await shown(page)).toBe('the whole run');
    await page.keyboard.press('/');
    await tabTo(page, { tag: 'plot' });
    await page.keyboard.press('+');
    const closer = await shown(page);
    expect(closer).toMatch(/^\d+:\d\d\.\d to \d+:\d\d\.\d$/);
    await page.keyboard.press('ArrowRight');
    expect(await shown(page)).not.toBe(closer);
    await page.keyboard.press('ArrowLeft');
    expect(await shown(page)).toBe(closer);
    await page.keyboard.press('Escape');
    expect(await shown(page)).toBe('the whole run');
  });

  it('a note is written, and the minute around it is shown', async () => {
    const { page } = await session.runPage();
    await page.keyboard.press('n');
    await page.keyboard.type('by hand');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('button', { name: 'add', exact: true }).count()).toBe(0);
    await page.keyboard.press('n');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('pulled the plug');
    await page.keyboard.press('Enter');
    await page.locator('.events summary').focus();
    await page.keyboard.press('Enter');
    await page.locator('.events td', { hasText: 'pulled the plug' }).waitFor();
    await tabTo(page, { tag: 'time' });
    await page.keyboard.press('Enter');
    expect(await shown(page)).toContain(' to ');
  });

  it('a set of charts is applied, saved, exported, imported and deleted', async () => {
    const { page, complaints } = await session.runPage();
    const menu = page.locator('.bookmarks');
    await page.keyboard.press('/');
    await tabTo(page, { name: 'bookmarks' });
    await page.keyboard.press('Enter');
    await menu.locator('li').first().waitFor();
    await tabTo(page, { name: 'InnoDB redo log' });
    await page.keyboard.press('Enter');
    await page.locator('.chart h3', { hasText: 'Redo written' }).waitFor();

    await menu.locator('summary').focus();
    await page.keyboard.press('Enter');
    await tabTo(page, { name: 'name of the set' });
    await page.keyboard.type('mine');
    await page.keyboard.press('Enter');
    await menu.locator('[role=status]', { hasText: 'Saved as “mine”' }).waitFor();
    const own = menu.locator('li', { hasText: 'mine' });
    const coming = page.waitForEvent('download');
    await own.getByRole('button', { name: 'export' }).focus();
    await page.keyboard.press('Enter');
    const toml = (await bytesOf(coming)).toString();
    expect(toml).toContain('name = "mine"');
    expect(toml).toContain('[[chart]]');

    const titles = await page.locator('.chart h3').allTextContents();
    await own.getByRole('button', { name: 'delete mine' }).focus();
    await page.keyboard.press('Enter');
    await own.waitFor({ state: 'detached' });
    await menu.locator('input[type=file]').setInputFiles({ name: 'mine.toml', mimeType: 'application/toml', buffer: Buffer.from(toml) });
    await menu.locator('[role=status]', { hasText: '“mine” was imported' }).waitFor();
    await page.keyboard.press('Escape');
    for (let left = titles.length; left > 0; left--) await page.getByRole('button', { name: 'remove the chart' }).first().press('Enter');
    await menu.locator('summary').press('Enter');
    await own.getByRole('button', { name: 'mine' }).first().press('Enter');
    await page.locator('.chart').first().waitFor();
    expect(await page.locator('.chart h3').allTextContents()).toEqual(titles);
    expect(complaints).toEqual([]);
  });

  it('a file that is no set of charts is refused in words', async () => {
    const { page } = await session.runPage();
    await page.locator('.bookmarks summary').press('Enter');
    await page.locator('.bookmarks input[type=file]').setInputFiles({ name: 'no.toml', mimeType: 'text/plain', buffer: Buffer.from('<script>') });
    expect(await page.locator('.bookmarks [role=alert]').textContent()).toContain('no set of charts');
  });

  it('the page is dark by d, stays so, and its charts follow', async () => {
    const { page, complaints } = await session.runPage();
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const color = () => page.locator('.chart .legend i').first().evaluate((one) => getComputedStyle(one).backgroundColor);
    const light = await color();
    await page.keyboard.press('d');
    expect(await paper()).toBe('rgb(20, 24, 28)');
    await page.waitForFunction((was) => getComputedStyle(document.querySelector('.chart .legend i') as Element).backgroundColor !== was, light);
    await page.reload();
    await toFirstChart(page);
    expect(await paper()).toBe('rgb(20, 24, 28)');
    await page.keyboard.press('d');
    expect(await paper()).toBe('rgb(253, 253, 252)');
    expect(complaints).toEqual([]);
  });
});
