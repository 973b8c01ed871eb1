/** `whyso serve` over a folder of recordings, and its pages in Chromium: what every test of it begins with. */

import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { Browser, Download, Page } from 'playwright-core';
import { expect } from 'vitest';
import { HOSTILE, launch } from '../report.ts';

/** The run of the report that is tested. */
export const RUN = dirname(resolve(process.env['REPORT_HTML'] ?? ''));
export const ID = basename(RUN);

/** Markup and a hundred thousand characters, as a note of the run. */
export const hostileNote = (_folder: string, runs: string) => appendFileSync(join(runs, ID, 'notes.jsonl'), `${JSON.stringify({ t_ns: 0, text: HOSTILE + 'x'.repeat(100_000) })}\n`);

export interface TestPage {
  page: Page;
  /** Errors and warnings on the console, uncaught exceptions, and requests for anything but this server. */
  complaints: string[];
}

export type Scheme = 'light' | 'dark';

/** One server of the page and one browser, for the tests of a file. */
export class ServeSession {
  readonly folder: string;
  readonly runs: string;
  readonly browser: Browser;
  /** With the token. */
  readonly address: string;
  readonly origin: string;
  readonly #server: ChildProcess;

  private constructor(folder: string, runs: string, browser: Browser, server: ChildProcess, address: string) {
    [this.folder, this.runs, this.browser, this.#server, this.address] = [folder, runs, browser, server, address];
    this.origin = new URL(address).origin;
  }

  /** Serves the run that is tested under these names; `prepare` may put more into the folder, and return further arguments of the program. */
  static async start(names: string[], prepare: (folder: string, runs: string) => string[] | void = () => undefined): Promise<ServeSession> {
    const folder = mkdtempSync(join(tmpdir(), 'whyso-serve-'));
    const runs = join(folder, 'runs');
    mkdirSync(runs);
    for (const name of names) cpSync(RUN, join(runs, name), { recursive: true });
    const more = prepare(folder, runs) ?? [];
    const server = spawn(process.env['WHYSO'] ?? 'whyso', ['serve', '--runs', runs, '--listen', '127.0.0.1:0', ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
    const address = await new Promise<string>((done, failed) => {
      server.stdout?.once('data', (data: Buffer) => done(data.toString().trim()));
      server.once('exit', (code) => failed(new Error(`whyso serve ended with ${code}`)));
    });
    return new ServeSession(folder, runs, await launch(), server, address);
  }

  async stop(): Promise<void> {
    await this.browser.close();
    const ended = new Promise((done) => this.#server.once('exit', done));
    this.#server.kill();
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  async closePages(): Promise<void> {
    await Promise.all(this.browser.contexts().map((context) => context.close()));
  }

  /** A page at a path, with the token. */
  async at(path: string, width = 1280, colorScheme: Scheme = 'light'): Promise<TestPage> {
    const context = await this.browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: this.origin });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== this.origin) complaints.push(`asked for ${request.url()}`);
    });
    await page.goto(this.address);
    await page.locator('main h1').waitFor();
    if (path !== '/') await page.goto(this.origin + path);
    return { page, complaints };
  }

  /** The run's own page, its charts drawn. */
  async runPage(query = '', width = 1280, colorScheme: Scheme = 'light', id = ID): Promise<TestPage> {
    const opened = await this.at(`/runs/${id}${query}`, width, colorScheme);
    await opened.page.locator('#settings').waitFor({ state: 'attached' });
    if (!query.includes('#')) await toFirstChart(opened.page);
    return opened;
  }
}

/**
 * Scrolls to the first chart until it has this many lines. Charts out of sight are not read, and
 * what is still to come above this one may push it out of sight again.
 */
export async function toFirstChart(page: Page, lines = 1): Promise<void> {
  const chart = page.locator('.chart').first();
  const drawn = async () => {
    await chart.scrollIntoViewIfNeeded();
    return chart.locator('.legend b').count();
  };
  await expect.poll(drawn, { timeout: 30_000 }).toBeGreaterThanOrEqual(lines);
}

/** What a download holds. */
export async function bytesOf(coming: Promise<Download>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await (await coming).createReadStream()) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export const shown = (page: Page) => page.locator('.window b').first().textContent();

/** Chooses from the export list of a chart, the first one if none is given. */
export async function exportAs(page: Page, what: string, chart = page.locator('.chart').first()): Promise<void> {
  await chart.locator('.export summary').click();
  await chart.getByRole('button', { name: what, exact: true }).click();
}
