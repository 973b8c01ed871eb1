/** The page of `whyso serve` in a real Chromium, over the run of the report that is tested, and a copy of it. */

import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOSTILE, launch } from './report.ts';

const run = dirname(resolve(process.env['REPORT_HTML'] ?? ''));
const id = basename(run);
const other = `${id}-again`;

let browser: Browser;
let server: ChildProcess;
let folder: string;
/** With the token. */
let address = '';
let origin = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'whyso-serve-'));
  const runs = join(folder, 'runs');
  mkdirSync(runs);
  for (const name of [id, other]) cpSync(run, join(runs, name), { recursive: true });
  appendFileSync(join(runs, id, 'notes.jsonl'), `${JSON.stringify({ t_ns: 0, text: HOSTILE + 'x'.repeat(100_000) })}\n`);
  server = spawn(process.env['WHYSO'] ?? 'whyso', ['serve', '--runs', runs, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  address = await new Promise((done) => server.stdout?.once('data', (data: Buffer) => done(data.toString().trim())));
  origin = new URL(address).origin;
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

afterEach(async () => {
  await Promise.all(browser.contexts().map((context) => context.close()));
});

interface Seen {
  page: Page;
  complaints: string[];
}

async function at(path: string, width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<Seen> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin) complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(address);
  await page.locator('main h1').waitFor();
  if (path !== '/') await page.goto(origin + path);
  return { page, complaints };
}

async function runPage(query = '', width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<Seen> {
  const seen = await at(`/runs/${id}${query}`, width, colorScheme);
  await seen.page.locator('#settings').waitFor({ state: 'attached' });
  // Charts that are not in sight are not read.
  await seen.page.locator('.chart').first().scrollIntoViewIfNeeded();
  await seen.page.locator('.chart .legend b').first().waitFor();
  return seen;
}

const shown = (page: Page) => page.locator('.window b').first().textContent();

describe('the list of runs', () => {
  it('takes the token out of the address, and shows nothing without it', async () => {
    const { page, complaints } = await at('/');
    expect(page.url()).toBe(`${origin}/`);
    expect(complaints).toEqual([]);
    const stranger = await (await browser.newContext()).newPage();
    await stranger.goto(origin);
    await stranger.locator('[role=alert]').waitFor();
    expect(await stranger.locator('[role=alert]').textContent()).toContain('this needs the token');
    expect(await stranger.locator('tbody tr').count()).toBe(0);
  });

  it('says what was found, and is searched and sorted', async () => {
    const { page, complaints } = await at('/');
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
    const { page, complaints } = await at('/');
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
    const { page } = await at('/');
    const doomed = page.getByLabel(`delete ${other}`, { exact: true });
    await doomed.click();
    await page.getByRole('button', { name: 'Keep' }).click();
    expect(await page.locator('tbody tr').count()).toBe(2);
    cpSync(run, join(folder, 'runs', `${id}-doomed`), { recursive: true });
    await page.reload();
    await page.getByLabel(`delete ${id}-doomed`, { exact: true }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
  });
});

describe('a run', () => {
  for (const [width, scheme] of [[1280, 'light'], [2560, 'dark']] as const) {
    it(`is drawn at ${width} pixels, ${scheme}, without a complaint`, async () => {
      const { page, complaints } = await runPage('', width, scheme);
      expect(await page.locator('.chart canvas').count()).toBeGreaterThan(3);
      expect(await page.locator('h2', { hasText: 'Throughput and latency' }).count()).toBe(1);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(wide).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    });
  }

  it('applies a dragged window to charts and tables, and the address says so', async () => {
    const { page, complaints } = await runPage();
    expect(await shown(page)).toBe('the whole run');
    const over = page.locator('.chart .u-over').first();
    await over.scrollIntoViewIfNeeded();
    const box = (await over.boundingBox()) as { x: number; y: number; width: number; height: number };
    const tables = page.waitForResponse((response) => response.url().includes('/tables?'));
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 50, { steps: 5 });
    await page.mouse.up();
    expect((await tables).status()).toBe(200);
    expect(await shown(page)).toMatch(/^\d+:\d\d\.\d to \d+:\d\d\.\d$/);
    await page.waitForURL(/from=.*to=/);
    const said = await shown(page);
    const again = await runPage(new URL(page.url()).search);
    expect(await shown(again.page)).toBe(said);
    await page.locator('.window button', { hasText: 'all' }).click();
    expect(await shown(page)).toBe('the whole run');
    expect(complaints).toEqual([]);
  });

  it('shows a level alone, by its button', async () => {
    const { page } = await runPage();
    await page.locator('.window button', { hasText: '4' }).first().click();
    expect(await shown(page)).toBe('the level of 4 users');
    await page.waitForURL(/level=/);
  });

  it('finds a series by typing, and draws it as a rate, raw and per transaction', async () => {
    const { page, complaints } = await runPage();
    await page.keyboard.press('/');
    await page.keyboard.type('questions');
    await page.keyboard.press('Enter');
    const chart = page.locator('.chart').first();
    await chart.locator('h3', { hasText: 'Questions' }).waitFor();
    for (const mode of ['per transaction', 'raw', 'rate']) {
      const read = page.waitForResponse((response) => response.url().includes('/series?'));
      await chart.getByRole('button', { name: mode, exact: true }).click();
      expect((await read).status()).toBe(200);
    }
    await page.locator('.chart .legend b').first().waitFor();
    expect(complaints).toEqual([]);
  });

  it('keeps all charts in step, by mouse and by keyboard', async () => {
    const { page } = await runPage();
    const plot = page.locator('.plot').first();
    await plot.scrollIntoViewIfNeeded();
    await plot.focus();
    await page.keyboard.press('+');
    await page.keyboard.press('ArrowRight');
    expect(await shown(page)).not.toBe('the whole run');
    await page.keyboard.press('0');
    expect(await shown(page)).toBe('the whole run');
    const box = (await plot.boundingBox()) as { x: number; y: number; width: number; height: number };
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.waitForFunction(() => [...document.querySelectorAll('.u-cursor-x')].filter((line) => (line as HTMLElement).style.transform !== '').length > 1);
  });

  it('exports a chart as CSV and SVG', async () => {
    const { page } = await runPage();
    for (const [kind, begin] of [['csv', 'seconds,series'], ['svg', '<svg xmlns']] as const) {
      const coming = page.waitForEvent('download');
      await page.locator('.chart .export').first().selectOption(kind);
      const stream = await (await coming).createReadStream();
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      expect(Buffer.concat(chunks).toString().startsWith(begin)).toBe(true);
    }
  });

  it('applies a set of charts that ships, and keeps one of the reader’s own', async () => {
    const { page, complaints } = await runPage();
    await page.locator('.bookmarks summary').click();
    await page.getByRole('button', { name: 'InnoDB redo log' }).click();
    expect(await page.locator('.chart h3').first().textContent()).toBe('Redo written');
    await page.locator('.bookmarks summary').click();
    await page.getByLabel('name of the set of charts').fill('my <b>set</b>');
    await page.keyboard.press('Enter');
    await page.locator('.bookmarks [role=status]').waitFor();
    expect(await page.locator('.bookmarks li').first().textContent()).toContain('my <b>set</b>');
    expect(complaints).toEqual([]);
  });

  it('takes a note at the pointer', async () => {
    const { page } = await runPage();
    await page.locator('#explorer h2').click();
    await page.keyboard.press('n');
    await page.keyboard.type('switched <i>something</i>');
    await page.keyboard.press('Enter');
    await page.locator('.events summary').click();
    await page.locator('.events td', { hasText: 'switched <i>something</i>' }).waitFor();
  });

  it('writes a report of charts and text, as one file', async () => {
    const { page, complaints } = await runPage();
    await page.locator('.chart .export').first().selectOption('report');
    await page.getByRole('link', { name: 'report (1)' }).click();
    await page.getByRole('button', { name: 'add text' }).click();
    await page.getByLabel('text', { exact: true }).last().fill('# Why\n\n**Because** <img src=x onerror="window.broken=1">');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'export as HTML' }).click();
    const chunks: Buffer[] = [];
    for await (const chunk of await (await coming).createReadStream()) chunks.push(chunk as Buffer);
    const html = Buffer.concat(chunks).toString();
    expect(html).toContain('<svg xmlns');
    expect(html).toContain('<strong>Because</strong> &lt;img');
    expect(html).not.toContain('<script');
    expect(complaints).toEqual([]);
  });

  it('says that a run is not there', async () => {
    const { page } = await at('/runs/..%2f..%2fetc');
    await page.locator('[role=alert]').waitFor();
    expect(await page.locator('[role=alert]').textContent()).toContain('there is no such run');
  });
});

describe('a comparison', () => {
  it('shows tables and draws what differs, for both runs', async () => {
    const { page, complaints } = await at(`/compare?first=${id}&second=${other}`);
    await page.locator('.chart canvas').first().waitFor();
    // The copy is the same start: that is told, and nothing is compared.
    await page.locator('[role=alert], main table').first().waitFor();
    expect(await page.locator('.sides a').count()).toBeGreaterThan(1);
    expect(complaints.filter((one) => !one.includes('400'))).toEqual([]);
  });
});
