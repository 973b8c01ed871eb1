import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseTab, headOf, HOSTILE, launch, open, reportHtml, reportUrl, variant } from './report.ts';

let browser: Browser;
const levels = headOf(reportHtml).run.levels.filter((level) => level.purpose === 'sweep');
const [first, last] = [levels[0], levels.at(-1)];
if (!first || !last) throw new Error('the report has no levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const BLOCK = 700_000;
const part = (page: Page) => page.locator('#functions-over-time');
const legend = async (page: Page) => (await part(page).locator('li button').allTextContents()).map((text) => text.trim());

/** The report with these functions in place of its own: CPUs by second since the load began. */
function reportOf(functions: [string, number[]][]): { url: string; remove: () => void } {
  const seconds = functions[0]?.[1].map((_, second) => second * 1e6 + 500_000) ?? [];
  return variant(
    (head) => {
      head.series = head.series.filter((entry) => entry.source !== 'functions');
      head.axes.push({ block: BLOCK, slot: 0 });
      functions.forEach(([instance], place) =>
        head.series.push({
          host: 'server', source: 'functions', metric: 'on_cpus', instance, kind: 'gauge', unit: 'CPUs',
          axis: head.axes.length - 1, block: BLOCK, slot: place + 1, form: 'samples', flat: false,
        }),
      );
    },
    undefined,
    { [BLOCK]: [seconds, ...functions.map(([, cpus]) => cpus)] },
  );
}

test('the run was sampled, and its functions are drawn with shares that add up', async () => {
  const { page, complaints } = await open(browser, `${reportUrl}#functions`);
  await expect.poll(async () => (await legend(page)).length).toBeGreaterThan(1);
  const shares = (await legend(page)).map((text) => Number(/([\d.]+) ?%$/.exec(text)?.[1] ?? NaN));
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeGreaterThan(95);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThan(105);
  expect(await part(page).locator('path[data-function]').count()).toBe(shares.length);
  expect(complaints).toEqual([]);
  await page.close();
});

test('the legend is of the level that is chosen, and colours stay', async () => {
  const seconds = Math.ceil((last.window.end_ns - headOf(reportHtml).origin_ns) / 1e9);
  const from = (last.window.begin_ns - headOf(reportHtml).origin_ns) / 1e9;
  const changed = reportOf([
    ['early · mariadbd', Array.from({ length: seconds }, (_, second) => (second + 1 < from ? 2 : 0))],
    ['late · mariadbd', Array.from({ length: seconds }, (_, second) => (second + 1 < from ? 0 : 1))],
    ['all others', Array.from({ length: seconds }, () => 0)],
  ]);
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  await expect.poll(() => legend(page)).toEqual([expect.stringMatching(/^early/), expect.stringMatching(/^late/), expect.stringMatching(/^all others 0/)]);
  const colors = () => part(page).locator('path[data-function]').evaluateAll((paths) => paths.map((path) => path.getAttribute('fill')));
  const before = await colors();
  await chooseTab(page, 'Levels');
  await page.locator('.levels tbody tr').nth(levels.length - 1).click();
  await expect.poll(() => legend(page)).toContain('late 100 %');
  expect(await colors()).toEqual(before);
  // The second under the pointer takes the shares' place.
  await chooseTab(page, 'Functions');
  const box = await part(page).locator('svg').boundingBox();
  await part(page).locator('svg').hover({ position: { x: (box?.width ?? 0) * 0.6, y: 100 } });
  await expect.poll(() => legend(page)).toContain('late 1 CPUs');
  // A function that was picked stays lit.
  await part(page).getByRole('button', { name: /^late/ }).click();
  expect(await part(page).getByRole('button', { name: /^late/ }).getAttribute('aria-pressed')).toBe('true');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('keys move and zoom it with the page, and 0 shows all', async () => {
  const { page, complaints } = await open(browser, `${reportUrl}#functions`);
  const chart = part(page).getByRole('img');
  const ends = () => part(page).locator('.hint').textContent();
  const whole = await ends();
  await chart.focus();
  await page.keyboard.press('+');
  await expect.poll(ends).not.toBe(whole);
  await page.keyboard.press('0');
  await expect.poll(ends).toBe(whole);
  expect(await chart.getAttribute('aria-label')).toMatch(/CPUs by function over time: \S/);
  expect(complaints).toEqual([]);
  await page.close();
});

test('a run without stacks has no such chart, an idle window has a note, and names are text', async () => {
  const without = reportOf([]);
  const one = await open(browser, `${without.url}#functions`);
  expect(await part(one.page).count()).toBe(0);
  expect(one.complaints).toEqual([]);
  await one.page.close();
  without.remove();
  const idle = reportOf([[`${HOSTILE} · mariadbd`, [0, 0, 0]], ['all others', [0, 0, 0]]]);
  const two = await open(browser, `${idle.url}#functions`);
  await expect.poll(() => part(two.page).textContent()).toContain('No thread was found on a CPU in this window.');
  expect((await legend(two.page))[0]).toContain(HOSTILE);
  expect(two.complaints).toEqual([]);
  await two.page.close();
  idle.remove();
});
