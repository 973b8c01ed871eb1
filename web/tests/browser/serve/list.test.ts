/** The list of runs of `whyso serve`. */

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, RUN, Served, hostileNote } from './served.ts';

const other = `${ID}-again`;

let served: Served;

beforeAll(async () => {
  served = await Served.start([ID, other], hostileNote);
});

afterAll(() => served?.stop());

afterEach(() => served.closePages());

describe('the list of runs', () => {
  it('takes the token out of the address, and shows nothing without it', async () => {
    const { page, complaints } = await served.at('/');
    expect(page.url()).toBe(`${served.origin}/`);
    expect(complaints).toEqual([]);
    const stranger = await (await served.browser.newContext()).newPage();
    await stranger.goto(served.origin);
    await stranger.locator('[role=alert]').waitFor();
    expect(await stranger.locator('[role=alert]').textContent()).toContain('this needs the token');
    expect(await stranger.locator('tbody tr').count()).toBe(0);
  });

  it('says what was found, and is searched and sorted', async () => {
    const { page, complaints } = await served.at('/');
    await page.locator('.verdict').nth(1).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(2);
    await page.getByLabel('search the runs').fill('onerror');
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(await page.evaluate(() => (window as { broken?: number }).broken)).toBeUndefined();
    await page.getByLabel('search the runs').fill('no such thing anywhere');
    expect(await page.locator('tbody').textContent()).toContain('No run has');
    await page.getByLabel('search the runs').fill('');
    await page.getByRole('button', { name: 'size' }).click();
    expect(await page.locator('th[aria-sort=descending]').textContent()).toContain('size');
    expect(complaints).toEqual([]);
  });

  it('is used from the keyboard', async () => {
    const { page, complaints } = await served.at('/');
    await page.keyboard.press('/');
    await page.keyboard.type('oltp');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('#explorer').waitFor();
    expect(page.url()).toContain('/runs/');
    await page.keyboard.press('g');
    await page.locator('tbody tr').nth(1).waitFor();
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('c');
    await page.getByRole('heading', { name: 'Comparison' }).waitFor();
    // One is a copy of the other: that nothing is compared is said, and Chromium notes the refusal.
    await page.locator('[role=alert]').first().waitFor();
    await page.keyboard.press('?');
    expect(await page.locator('dl.keys').textContent()).toContain('compare the selected runs');
    expect(complaints.filter((one) => !one.includes('status of 400'))).toEqual([]);
  });

  it('deletes a run only after it was confirmed', async () => {
    const { page } = await served.at('/');
    const doomed = page.getByLabel(`delete ${other}`, { exact: true });
    await doomed.click();
    await page.getByRole('button', { name: 'Keep' }).click();
    expect(await page.locator('tbody tr').count()).toBe(2);
    cpSync(RUN, join(served.runs, `${ID}-doomed`), { recursive: true });
    await page.reload();
    await page.getByLabel(`delete ${ID}-doomed`, { exact: true }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
  });
});
