/** A report opened in Chromium, and what the tests ask of it. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import { chromium, type Browser, type Page } from 'playwright-core';
import type { Head } from '../../src/data/model.ts';

export const HOSTILE = '</script><img src=x onerror="window.broken=1"><!--<script>&amp;';

const path = resolve(process.env['REPORT_HTML'] ?? '');
if (!process.env['REPORT_HTML'] || !existsSync(path)) {
  throw new Error('REPORT_HTML must name a report: REPORT_HTML=runs/…/report.html npm run test:browser');
}

const HEAD = /(<script type="application\/json" id="whyso-head">)(.*?)(<\/script>)/s;

export function headOf(html: string): Head {
  const found = HEAD.exec(html);
  if (!found?.[2]) throw new Error('the report holds no head');
  return JSON.parse(found[2]) as Head;
}

export const reportHtml = readFileSync(path, 'utf8');
export const reportUrl = pathToFileURL(path).href;

/** A column as `crates/report/src/codec.rs` writes integers; NaN is missing. */
function encoded(values: number[]): number[] {
  const bytes: number[] = [];
  const varint = (value: number) => {
    for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
    bytes.push(value);
  };
  const zigzag = (value: number) => varint(value < 0 ? -2 * value - 1 : 2 * value);
  const missing = values.flatMap((value, place) => (Number.isNaN(value) ? [place] : []));
  bytes.push(0);
  varint(values.length);
  varint(missing.length);
  missing.forEach((place, order) => varint(place - (missing[order - 1] ?? 0)));
  const present = values.filter((value) => !Number.isNaN(value));
  if (present.length === 0) return bytes;
  zigzag(present[0] as number);
  zigzag(0);
  present.slice(1).forEach((value, place) => zigzag(value - (present[place] as number)));
  return bytes;
}

/** A block of columns, as the report's last script element. */
function blockElement(number: number, columns: number[][]): string {
  const bytes = columns.map(encoded).flatMap((column) => {
    const length: number[] = [];
    let rest = column.length;
    for (; rest >= 0x80; rest >>= 7) length.push((rest & 0x7f) | 0x80);
    return [Buffer.from([...length, rest]), Buffer.from(column)];
  });
  const packed = deflateRawSync(Buffer.concat(bytes)).toString('base64');
  return `<script type="application/octet-stream;base64" id="whyso-block-${number}">${packed}</script>`;
}

/** Threads of a server: of each, its states' seconds between snapshots, `[snapshot][state]`; one fewer than snapshots. */
export interface TestThread {
  name: string;
  role: string;
  seconds: number[][];
  statement?: string;
}

/**
 * The same report with another head, in a file of its own; with these threads in place of its own, where there are some, and with further
 * blocks of columns by number.
 */
export function variant(
  change: (head: Head) => void,
  threadData?: { snapshots_ns: number[]; states: string[]; threads: TestThread[] },
  blocks: Record<number, number[][]> = {},
): { url: string; remove: () => void } {
  const head = headOf(reportHtml);
  const extra = Object.entries(blocks).map(([number, columns]) => blockElement(Number(number), columns));
  if (threadData) {
    const block = 100_000;
    const { snapshots_ns, states, threads } = threadData;
    const running = states.map((_, state) => {
      let sum = 0;
      return threads.flatMap((thread) => [sum, ...thread.seconds.map((seconds) => (sum += Math.round((seconds[state] ?? 0) * 1e5)))]);
    });
    const cells = (of: (thread: TestThread, place: number) => number) => threads.flatMap((thread, place) => snapshots_ns.map(() => of(thread, place)));
    const statements = [...new Set(threads.flatMap((thread) => thread.statement ?? []))];
    let requests = 0;
    const answered = threads.flatMap((thread, place) => [requests, ...thread.seconds.map(() => (requests += place))]);
    extra.push(blockElement(block, [...running, answered, cells((_, place) => place + 50), cells((thread) => (thread.statement === undefined ? NaN : statements.indexOf(thread.statement)))]));
    const list = threads.map(({ name, role }, place) => ({ tid: 1000 + place, name, role }));
    head.threads = { states, t_ns: snapshots_ns, unit_ns: 10_000, list, statements, block, note: '' };
  }
  change(head);
  const json = JSON.stringify(head).replaceAll('<', '\\u003c');
  const folder = mkdtempSync(join(tmpdir(), 'whyso-page-'));
  const file = join(folder, 'report.html');
  const html = reportHtml.replace(HEAD, (_all, open: string, _json, close: string) => open + json + close);
  writeFileSync(file, html.replace('</body>', () => `${extra.join('')}</body>`));
  return { url: pathToFileURL(file).href, remove: () => rmSync(folder, { recursive: true }) };
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
    ],
  });
}

export interface TestPage {
  page: Page;
  /** Errors on the console, uncaught exceptions, and requests for anything but the file itself. */
  complaints: string[];
}

/** A page of any kind, as soon as it is there. */
export async function openPage(browser: Browser, url: string, width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<TestPage> {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const address = request.url();
    if (address !== url.replace(/#.*$/, '') && !address.startsWith('data:') && !address.startsWith('blob:')) complaints.push(`requested ${address}`);
  });
  await page.goto(url);
  return { page, complaints };
}

/** A run's report, once it has drawn its charts. */
export async function open(browser: Browser, url: string, width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<TestPage> {
  const { page, complaints } = await openPage(browser, url, width, colorScheme);
  await page.locator('.chart canvas').first().waitFor({ state: 'attached' });
  await page.waitForFunction(() => document.querySelectorAll('.chart .legend b').length > 0);
  return { page, complaints };
}

/** Shows what is behind a tab of a run's page. */
export const chooseTab = (page: Page, name: string) => page.getByRole('tab', { name, exact: true }).click();

/** How many colours a chart's canvas shows: bands and axes alone have few, a drawn line brings its own. */
export function linePixels(page: Page, chart: number, color: string): Promise<number> {
  return page.locator('.chart canvas').nth(chart).evaluate((canvas, rgb) => {
    const probe = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    probe.fillStyle = rgb;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data as unknown as [number, number, number];
    const drawn = canvas as HTMLCanvasElement;
    const { data } = (drawn.getContext('2d') as CanvasRenderingContext2D).getImageData(0, 0, drawn.width, drawn.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const near = Math.abs((data[at] ?? 0) - r) + Math.abs((data[at + 1] ?? 0) - g) + Math.abs((data[at + 2] ?? 0) - b);
      if ((data[at + 3] ?? 0) > 200 && near < 24) count++;
    }
    return count;
  }, color);
}

export function cssVariable(page: Page, name: string): Promise<string> {
  return page.evaluate((one) => getComputedStyle(document.documentElement).getPropertyValue(one).trim(), name);
}

/** "0:12 to 1:40 of the run", from the line under the picker. */
export async function viewText(page: Page): Promise<string> {
  await page.mouse.move(2, 2);
  return (await page.locator('#explorer .cursor').textContent()) ?? '';
}
