/** A report opened in Chromium, and what the tests ask of it. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
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

/** The same report with another head, in a file of its own. */
export function variant(change: (head: Head) => void): { url: string; remove: () => void } {
  const head = headOf(reportHtml);
  change(head);
  const json = JSON.stringify(head).replaceAll('<', '\\u003c');
  const folder = mkdtempSync(join(tmpdir(), 'whyso-page-'));
  const file = join(folder, 'report.html');
  writeFileSync(file, reportHtml.replace(HEAD, (_all, open: string, _json, close: string) => open + json + close));
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

export interface Opened {
  page: Page;
  /** Errors on the console, uncaught exceptions, and requests for anything but the file itself. */
  complaints: string[];
}

export async function open(browser: Browser, url: string, width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<Opened> {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const asked = request.url();
    if (asked !== url && !asked.startsWith('data:') && !asked.startsWith('blob:')) complaints.push(`asked for ${asked}`);
  });
  await page.goto(url);
  await page.locator('.chart canvas').first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.chart .legend b').length > 0);
  return { page, complaints };
}

/** How many colours a chart's canvas shows: bands and axes alone have few, a drawn line brings its own. */
export function linePixels(page: Page, chart: number, color: string): Promise<number> {
  return page.locator('.chart canvas').nth(chart).evaluate((canvas, wanted) => {
    const probe = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    probe.fillStyle = wanted;
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
