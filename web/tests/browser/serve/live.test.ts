/** A server that is recorded from the page of `whyso serve`: a throwaway MariaDB of this machine. */

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { barriersOf } from '../axe.ts';
import { ID, ServeSession, bytesOf, exportAs } from './session.ts';

/** For a server to start or to stop, and for a recording to begin or to be ended. */
const LONG_MS = 45_000;
const NAME = 'throwaway';

let session: ServeSession;
let whyso: (...words: string[]) => string;

beforeAll(async () => {
  session = await ServeSession.start([ID], (folder) => {
    const env = { ...process.env, HOME: folder, XDG_CACHE_HOME: join(folder, 'cache'), XDG_STATE_HOME: join(folder, 'state'), PATH: `${process.env['PATH']}:/usr/local/sbin:/usr/sbin:/sbin` };
    whyso = (...words) => execFileSync(process.env['WHYSO'] ?? 'whyso', words, { env, cwd: folder, timeout: LONG_MS, encoding: 'utf8' });
    whyso('server', 'start', '--as', NAME);
    const { started } = JSON.parse(whyso('server', 'list', '--json')) as { started: { name: string; dsn: string }[] };
    const dsn = started.find((run) => run.name === NAME)?.dsn ?? '';
    const servers = join(folder, 'servers.toml');
    writeFileSync(servers, `[[server]]\nname = "shop"\ndsn = ${JSON.stringify(dsn)}\ninterval_ms = 500\ntrace = false\n`, { mode: 0o600 });
    return ['--servers', servers];
  });
}, LONG_MS * 2);

afterAll(async () => {
  // The folder that the server lies in goes with the page's server.
  try {
    whyso?.('server', 'stop', NAME);
  } finally {
    await session?.stop();
  }
}, LONG_MS * 2);

afterEach(() => session.closePages());

/** In its first seconds a recording has no answer for its last minute. The server refuses it, and the page asks again. */
const isFault = (complaint: string) => !complaint.includes('status of 409');

/** Times of the values that a chart draws. */
async function timesOf(page: Page, chart: Locator): Promise<number[]> {
  const coming = page.waitForEvent('download');
  await exportAs(page, 'CSV', chart);
  return (await bytesOf(coming)).toString().trimEnd().split('\n').slice(1).map((row) => Number(row.split(',')[0]));
}

describe('a server that the file names', () => {
  it('is recorded, watched, noted on and stopped from the page', { timeout: LONG_MS * 4 }, async () => {
    const { page, complaints } = await session.at('/');
    const server = page.locator('section', { has: page.getByRole('heading', { name: 'Servers' }) }).locator('li', { hasText: 'shop' });
    expect(await barriersOf(page)).toEqual([]);
    await server.getByRole('button', { name: 'record' }).click();
    const watch = server.getByRole('link', { name: 'watch it' });
    await watch.waitFor({ timeout: LONG_MS });
    // As a page that is opened in the recording's first moment: no source has been read yet.
    let isFirst = true;
    await page.route(/\/api\/v1\/runs\/[^/]+$/, async (route) => {
      const answer = await route.fetch();
      const head = (await answer.json()) as { series: unknown[] };
      await route.fulfill({ response: answer, json: isFirst ? { ...head, series: [] } : head });
      isFirst = false;
    });
    await watch.click();
    await page.locator('.now .live').waitFor({ timeout: LONG_MS });
    const id = decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1) ?? '');

    await page.keyboard.press('/');
    await page.keyboard.type('status questions');
    // A recording that has just begun gets its series one source after the other.
    await page.locator('#metric-picker-list [role=option] .metric', { hasText: /^Questions$/ }).waitFor({ timeout: LONG_MS });
    await page.locator('#explorer .chart').first().waitFor({ timeout: LONG_MS });
    await page.keyboard.press('Enter');
    const chart = page.locator('.chart', { has: page.getByRole('heading', { name: 'Questions', exact: true }) });
    await chart.getByRole('button', { name: 'raw' }).click();
    await chart.locator('.legend b').waitFor({ timeout: LONG_MS });
    const first = await timesOf(page, chart);
    await expect.poll(async () => (await timesOf(page, chart)).length, { timeout: LONG_MS, interval: 1000 }).toBeGreaterThan(first.length + 4);
    const grown = await timesOf(page, chart);
    expect(Math.max(...grown)).toBeGreaterThan(Math.max(...first) + 1);
    expect(grown.slice(0, first.length)).toEqual(first);

    await page.locator('#explorer h2').click();
    await page.keyboard.press('n');
    await page.keyboard.type('changed nothing <b>yet</b>');
    await page.keyboard.press('Enter');
    await page.locator('.events summary').click();
    await page.locator('.events td', { hasText: 'changed nothing <b>yet</b>' }).waitFor();

    // The answer is of its last minute, with the window.
    await page.locator('.now', { hasText: /From \d\d:\d\d:\d\d to \d\d:\d\d:\d\d\. The answer is of this window/ }).waitFor({ timeout: LONG_MS });
    expect(await page.getByRole('heading', { level: 1 }).textContent()).not.toBe('Being recorded');
    expect(await barriersOf(page)).toEqual([]);

    // The list has a line of it. The page stays open elsewhere, and opens the report when the recording ends.
    const list = await session.at('/');
    const watched = list.page.locator('section', { has: list.page.getByRole('heading', { name: 'Servers' }) }).locator('li', { hasText: 'shop' });
    await watched.locator('.line', { hasText: /[\d.,]+ statements\/s/ }).waitFor({ timeout: LONG_MS });
    expect(await barriersOf(list.page)).toEqual([]);
    await watched.getByRole('button', { name: 'stop' }).click();
    await watched.getByRole('button', { name: 'record' }).waitFor({ timeout: LONG_MS });
    await page.locator('.now').waitFor({ state: 'detached', timeout: LONG_MS });
    await page.getByText('complete', { exact: true }).waitFor({ timeout: LONG_MS });
    await chart.locator('.legend b').waitFor({ timeout: LONG_MS });
    expect(list.complaints.filter(isFault)).toEqual([]);

    await page.keyboard.press('g');
    const row = page.locator('tbody tr', { has: page.locator(`a[href$="/runs/${encodeURIComponent(id)}"]`) });
    await row.waitFor({ timeout: LONG_MS });
    await expect.poll(async () => row.textContent(), { timeout: LONG_MS }).not.toContain('live');
    const listed = await page.evaluate(async () => (await (await fetch('/api/v1/runs')).json()) as { runs: { id: string; live: boolean; ended: string; notes: string[] }[] });
    expect(listed.runs.find((run) => run.id === id)).toMatchObject({ live: false, ended: 'complete', notes: ['changed nothing <b>yet</b>'] });
    expect(complaints.filter(isFault)).toEqual([]);
  });
});
