/** The tabs of a report: one part at a time, by mouse, by keyboard and by address; all of them on paper. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseTab, headOf, launch, open, reportHtml, reportUrl, variant } from './report.ts';

let browser: Browser;
const head = headOf(reportHtml);

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const visible = (page: Page) => page.locator('[role=tabpanel]').evaluateAll((panels) => panels.filter((panel) => getComputedStyle(panel).visibility === 'visible').map((panel) => panel.id));
const chosen = (page: Page) => page.getByRole('tab', { selected: true }).textContent();

test('one tab is shown at a time, by mouse and by keyboard, and the address remembers which', async () => {
  const { page, complaints } = await open(browser, reportUrl);
  expect(await page.getByRole('tab').allTextContents()).toEqual(['Over time', 'Levels', 'Programs', 'Functions', 'Threads', 'Statements', 'Locks', 'Findings', 'Settings']);
  expect(await visible(page)).toEqual(['panel-time']);
  expect(new URL(page.url()).hash).toBe('');
  await chooseTab(page, 'Statements');
  expect(await visible(page)).toEqual(['panel-statements']);
  expect(new URL(page.url()).hash).toBe('#statements');
  await page.keyboard.press('ArrowRight');
  expect(await chosen(page)).toBe('Locks');
  await page.keyboard.press('End');
  expect(await chosen(page)).toBe('Settings');
  await page.keyboard.press('ArrowRight');
  expect(await chosen(page)).toBe('Over time');
  await page.keyboard.press('ArrowLeft');
  expect(await visible(page)).toEqual(['panel-settings']);
  // One stop for the Tab key, and then what is behind the tab.
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.closest('[role=tabpanel]')?.id)).toBe('panel-settings');
  await page.reload();
  await page.getByRole('tab', { name: 'Settings', selected: true }).waitFor();
  expect(complaints).toEqual([]);
  await page.close();
});

test.each([1280, 420])('the tabs stay in sight while a long tab is scrolled, %i pixels wide', async (width) => {
  const { page } = await open(browser, `${reportUrl}#levels`, width);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const box = await page.getByRole('tablist').boundingBox();
  expect(box?.y).toBeGreaterThanOrEqual(0);
  expect(box?.y).toBeLessThan(40);
  // A tab that is chosen there begins at its beginning.
  await chooseTab(page, 'Findings');
  await expect.poll(() => page.getByRole('heading', { name: 'What was found' }).evaluate((title) => title.getBoundingClientRect().top)).toBeGreaterThan(0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
  await page.close();
});

test('the evidence of a cause opens the tab that has it', async () => {
  const series = head.series.find((entry) => entry.kind === 'counter' && !entry.flat && entry.source !== 'load');
  const level = head.run.levels[0];
  if (!series || !level) throw new Error('the report has no counter or no level');
  const { host, source, metric, instance } = series;
  const changed = variant((head) => {
    const suspect = head.explanation.suspects[0];
    const [cause] = head.answer.causes;
    if (!suspect || !cause) throw new Error('the report has no cause');
    suspect.evidence = [{ is: 'series', series: { host, source, metric, instance }, ...level.window }];
  });
  const { page, complaints } = await open(browser, `${changed.url}#locks`);
  const card = page.locator('#causes .cause').first();
  await card.locator('summary').first().click();
  await card.locator('.link').first().click();
  expect(await chosen(page)).toBe('Over time');
  await expect.poll(() => page.locator('.chart.focused').evaluate((chart) => {
    const box = chart.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight;
  })).toBe(true);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('paper has what is behind every tab, and no tabs', async () => {
  const { page } = await open(browser, reportUrl);
  await page.emulateMedia({ media: 'print' });
  expect((await visible(page)).length).toBe(9);
  expect(await page.getByRole('tablist').count()).toBe(0);
  for (const title of ['Over time', 'Levels', 'What was found', 'Server settings']) expect(await page.getByRole('heading', { name: title, exact: true }).isVisible(), title).toBe(true);
  await page.close();
});

test('a run with one level has no curve against users, and a tab with nothing behind it is not there', async () => {
  const changed = variant((head) => {
    head.run.levels.splice(1);
    delete head.flame;
    delete head.pfs;
    head.series = head.series.filter((entry) => entry.source !== 'functions');
    head.locks = [];
  });
  const { page, complaints } = await open(browser, `${changed.url}#locks`);
  expect(await page.locator('[aria-labelledby=scale-title]').count()).toBe(0);
  expect(await page.getByRole('tab').allTextContents()).toEqual(['Over time', 'Levels', 'Programs', 'Threads', 'Statements', 'Findings', 'Settings']);
  expect(await visible(page)).toEqual(['panel-time']);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
