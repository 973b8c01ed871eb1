/** The list of runs of `whyso serve`. */

import { cpSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, RUN, ServeSession, bytesOf, hostileNote } from './session.ts';

const other = `${ID}-again`;

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID, other], hostileNote);
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

describe('the list of runs', () => {
  it('takes the token out of the address, and shows nothing without it', async () => {
    const { page, complaints } = await session.at('/');
    expect(page.url()).toBe(`${session.origin}/`);
    expect(complaints).toEqual([]);
    const stranger = await (await session.browser.newContext()).newPage();
    await stranger.goto(session.origin);
    await stranger.locator('[role=alert]').waitFor();
    expect(await stranger.locator('[role=alert]').textContent()).toContain('this needs the token');
    expect(await stranger.locator('tbody tr').count()).toBe(0);
  });

  it('shows what was found, and is searched and sorted', async () => {
    const { page, complaints } = await session.at('/');
    await page.locator('.verdict').nth(1).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(2);
    await page.getByLabel('search the runs').fill('onerror');
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(await page.evaluate(() => (window as { broken?: number }).broken)).toBeUndefined();
    await page.getByLabel('search the runs').fill('no such thing anywhere');
    expect(await page.locator('tbody').textContent()).toContain('No run contains');
    await page.getByLabel('search the runs').fill('');
    await page.getByRole('button', { name: 'size' }).click();
    expect(await page.locator('th[aria-sort=descending]').textContent()).toContain('size');
    expect(complaints).toEqual([]);
  });

  it('begins with the latest verdict, and groups by workload and server where the user asks for it', async () => {
    const { page, complaints } = await session.at('/');
    const latest = page.locator('section', { has: page.getByRole('heading', { name: 'Latest verdict' }) });
    await latest.waitFor();
    expect(await latest.locator('.verdict').textContent()).toBe(await page.locator('td .verdict').first().getAttribute('title'));
    expect(await page.locator('.grouphead').count()).toBe(0);
    await page.getByLabel('by workload and server').check();
    expect((await page.locator('.grouphead').allTextContents()).map((text) => text.trim())).toEqual([expect.stringMatching(/^oltp-read-write on .+ 2 runs$/)]);
    expect(new URL(page.url()).searchParams.get('group')).toBe('yes');
    await page.reload();
    await page.locator('.grouphead').waitFor();
    await page.keyboard.press('j');
    expect(await page.locator('tr.at a').getAttribute('href')).toBe(await page.locator('tr.entry a').nth(1).getAttribute('href'));
    await latest.getByRole('link', { name: 'open the report' }).click();
    await page.getByRole('tablist').waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows what distinguishes runs, and lists those with the same tag or cause', async () => {
    writeFileSync(join(session.runs, other, 'labels.json'), JSON.stringify({ name: 'before the index', tags: ['shop'] }));
    const { page, complaints } = await session.at('/');
    await page.locator('tbody tr').nth(1).waitFor();
    await page.locator('td .name', { hasText: 'before the index' }).waitFor();
    await page.locator('button.cause').nth(1).waitFor();
    expect(await page.locator('button.cause').first().textContent()).toMatch(/^[a-z-]+ [\d.]+ %$/);
    expect(await page.locator('td.spark svg').count()).toBe(2);
    await page.locator('button.tag', { hasText: 'shop' }).click();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    expect(new URL(page.url()).searchParams.get('tag')).toBe('shop');
    // The address has the choice.
    await page.reload();
    await page.locator('td .name').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    await page.getByRole('button', { name: 'show all' }).click();
    await page.locator('button.cause').first().click();
    expect(await page.locator('tbody tr').count()).toBe(2);
    expect(await page.getByLabel('show runs of any cause').inputValue()).not.toBe('');
    expect(complaints).toEqual([]);
    rmSync(join(session.runs, other, 'labels.json'));
  });

  it('is a card for each run where the screen is narrow', async () => {
    const { page } = await session.at('/', 420);
    await page.locator('tbody tr').nth(1).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(420);
    expect(await page.locator('thead').isVisible()).toBe(false);
  });

  it('asks for the servers that it records once at first, and not again where there are none', async () => {
    const { page } = await session.at('/');
    await page.locator('tbody tr').nth(1).waitFor();
    let asked = 0;
    page.on('request', (request) => (asked += Number(request.url().endsWith('/live'))));
    await page.reload();
    await page.locator('tbody tr').nth(1).waitFor();
    await page.waitForTimeout(1000);
    expect(asked).toBe(1);
  });

  it('is used from the keyboard', async () => {
    const { page, complaints } = await session.at('/');
    await page.locator('tbody tr').nth(1).waitFor();
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
    // One is a copy of the other: the page reports that it compares nothing, and Chromium notes the refusal.
    await page.locator('[role=alert]').first().waitFor();
    await page.keyboard.press('?');
    expect(await page.locator('dl.keys').textContent()).toContain('compare the selected runs');
    expect(complaints.filter((complaint) => !complaint.includes('status of 400'))).toEqual([]);
  });

  it('deletes a run only after it was confirmed', async () => {
    const { page } = await session.at('/');
    const doomed = page.getByLabel(`delete ${other}`, { exact: true });
    await doomed.click();
    await page.getByRole('button', { name: 'Keep' }).click();
    expect(await page.locator('tbody tr').count()).toBe(2);
    cpSync(RUN, join(session.runs, `${ID}-doomed`), { recursive: true });
    await page.reload();
    await page.getByLabel(`delete ${ID}-doomed`, { exact: true }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
  });

  it('prunes a run only after it shows what is removed and what is kept', async () => {
    const { page, complaints } = await session.at('/');
    await page.getByLabel(`select ${other}`, { exact: true }).check();
    await page.getByRole('button', { name: 'prune…' }).click();
    const dialog = page.locator('dialog[open]');
    const words = await dialog.textContent();
    for (const word of ['Prune this run?', other, 'single readings', 'roll-ups', "can't be undone"]) expect(words).toContain(word);
    await dialog.getByRole('button', { name: 'Keep' }).click();
    expect(await page.locator('[role=status]').count()).toBe(0);
    await page.getByRole('button', { name: 'prune…' }).click();
    await dialog.getByRole('textbox').fill('much');
    await dialog.getByRole('button', { name: 'Prune', exact: true }).click();
    expect(await dialog.isVisible()).toBe(true);
    // By the keyboard alone: what is selected, its size, and Enter.
    await page.keyboard.press('Escape');
    await page.locator('h1').click();
    await page.keyboard.press('p');
    await dialog.getByRole('textbox').fill('1KiB');
    await page.keyboard.press('Enter');
    await page.locator('[role=status]').waitFor();
    expect(await page.locator('[role=status]').textContent()).toMatch(/The oldest detail was removed|Nothing was removed/);
    expect(complaints).toEqual([]);
  });

  it('backs runs up as one file, and takes them in again', async () => {
    const { page, complaints } = await session.at('/');
    await page.getByLabel(`select ${other}`, { exact: true }).check();
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'back up', exact: true }).click();
    expect((await coming).suggestedFilename()).toBe(`${other}.tar`);
    const tar = await bytesOf(coming);
    expect(tar.subarray(0, other.length).toString()).toBe(other);
    const all = page.waitForEvent('download');
    await page.getByRole('button', { name: 'select none' }).click();
    await page.getByRole('button', { name: 'back up all' }).click();
    expect((await all).suggestedFilename()).toMatch(/^whyso-\d+-runs\.tar$/);
    await (await all).cancel();

    const files = { name: 'all.tar', mimeType: 'application/x-tar', buffer: tar };
    const take = async (what: typeof files) => {
      const chooser = page.waitForEvent('filechooser');
      await page.locator('h1').click();
      await page.keyboard.press('i');
      await (await chooser).setFiles(what);
    };
    await take(files);
    await page.getByText('0 runs imported; 1 run was already there.').waitFor();
    await page.getByLabel(`delete ${other}`, { exact: true }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await take(files);
    await page.getByText('1 run imported.').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
    expect(existsSync(join(session.runs, other, 'run.json'))).toBe(true);
    expect(complaints).toEqual([]);
    await take({ ...files, buffer: Buffer.from('no archive at all') });
    await page.locator('[role=alert]').waitFor();
    expect(await page.locator('[role=alert]').textContent()).toContain('can\'t be read as a backup');
    expect(readdirSync(session.runs).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});
