/** Machines of a recording, and their programs, in a report. */

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriersOf } from './axe.ts';
import { hostsReport } from './hosts.ts';
import { chooseTab, launch, open, reportUrl } from './report.ts';

let browser: Browser;
let report: ReturnType<typeof hostsReport>;

beforeAll(async () => {
  browser = await launch();
  report = hostsReport();
});

afterAll(async () => {
  await browser?.close();
  report?.remove();
});

/** The text of each row, its cells with a blank between them. */
const textsOf = (rows: Locator) =>
  rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => (cell.textContent ?? '').replace(/\s+/g, ' ').trim()).filter((text) => text !== '').join(' ')));
const overflow = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const legend = (page: Page, title: string) => page.locator('.chart', { has: page.getByRole('heading', { name: title, exact: true }) }).locator('.legend .name');

describe('the hosts of a recording', () => {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [800, 'light'], [800, 'dark']] as const) {
    it(`are a row each, at ${width} pixels, ${scheme}`, async () => {
      const { page, complaints } = await open(browser, report.url, width, scheme);
      await chooseTab(page, 'Hosts');
      const rows = page.locator('#hosts tbody tr');
      await rows.nth(2).waitFor();
      const texts = await textsOf(rows);
      expect(texts[0]).toMatch(/^db server 95 % of 2 25 % of 8 GiB 2 MiB\/s, 4 MiB\/s vda 1 MiB\/s, 3 MiB\/s 86,400 s ± 180 µs$/);
      expect(texts[1]).toMatch(/^client load 60 % of 2 .* reference$/);
      expect(texts[2]).toMatch(/^load-1 other 25 % of 2 .* −2 ms ± 90 µs$/);
      expect(await page.locator('#hosts .missing').allTextContents()).toEqual(['load-1 is not whole: 3 pieces of what it recorded lost; its end did not arrive.']);
      expect(await overflow(page)).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
      await page.close();
    });
  }

  it('lead to charts of one host, and back to those of the run', async () => {
    const { page, complaints } = await open(browser, report.url);
    const before = await page.locator('.chart h3').allTextContents();
    await chooseTab(page, 'Hosts');
    await page.getByRole('button', { name: 'load-1', exact: true }).first().click();
    await page.waitForFunction(() => document.querySelector('#tab-time')?.getAttribute('aria-selected') === 'true');
    expect(await page.locator('.chart h3').allTextContents()).toEqual(['CPU of load-1', 'CPU by program of load-1', 'Memory of load-1', 'Network of load-1', 'Clock error bound of load-1']);
    await page.getByRole('button', { name: 'charts of the run' }).click();
    expect(await page.locator('.chart h3').allTextContents()).toEqual(before);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('are lines of one chart, by one click or from the search', async () => {
    const { page, complaints } = await open(browser, report.url);
    const search = page.locator('#metric-picker');
    await search.fill('user_ns');
    const found = page.locator('#metric-picker-list li', { hasText: 'over' });
    expect(await found.first().textContent()).toMatch(/over [34] hosts/);
    await found.first().click();
    await legend(page, 'user_ns of every host').nth(2).waitFor();
    const names = await legend(page, 'user_ns of every host').allTextContents();
    expect(names.toSorted()).toEqual(['client', 'db', 'load-1', 'server']);
    await page.getByLabel('host of the series').selectOption('db');
    await search.fill('received_bytes');
    expect(await page.locator('#metric-picker-list li').count()).toBe(1);
    await page.keyboard.press('Enter');
    const chart = page.locator('.chart', { has: page.getByRole('heading', { name: 'received_bytes of db', exact: true }) });
    await chart.getByRole('button', { name: 'over hosts' }).click();
    await legend(page, 'received_bytes of every host').nth(2).waitFor();
    expect((await legend(page, 'received_bytes of every host').allTextContents()).toSorted()).toEqual(expect.arrayContaining(['client', 'db', 'load-1']));
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('have their programs, and what no program used', async () => {
    const { page } = await open(browser, report.url);
    await chooseTab(page, 'Hosts');
    const rows = page.locator('#programs tbody tr');
    await rows.nth(2).waitFor();
    const texts = () => textsOf(rows);
    expect(await texts()).toEqual([
      expect.stringMatching(/^MariaDB 1\.1 55 % the server$/),
      expect.stringMatching(/^job-on-db 0\.3 15 % 256 MiB another program$/),
      expect.stringMatching(/^the rest 0\.5 25 % the kernel/),
    ]);
    await page.getByRole('group', { name: 'host of the programs' }).getByRole('button', { name: 'client' }).click();
    await rows.filter({ hasText: 'loads and records' }).first().waitFor();
    expect((await texts())[0]).toMatch(/^whyso 0\.5 25 % loads and records$/);
    await page.getByRole('button', { name: 'job-on-client' }).click();
    await page.locator('.chart.focused').waitFor();
    expect(await page.locator('.chart.focused h3').textContent()).toContain('cpu_ns of client');
    await page.close();
  });

  it('each have samplers that cost something', async () => {
    const { page, complaints } = await open(browser, report.url);
    await chooseTab(page, 'Settings');
    const costs = page.locator('section', { has: page.getByRole('heading', { name: 'What watching cost' }) }).locator('td', { hasText: /^status/ });
    await costs.filter({ hasText: 'status on db' }).waitFor();
    expect((await costs.allTextContents()).toSorted()).toEqual(['status', 'status on db', 'status on load-1']);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('are found by readers that see nothing', async () => {
    const { page } = await open(browser, report.url);
    await chooseTab(page, 'Hosts');
    await page.locator('#programs tbody tr').first().waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.close();
  });
});

it('one machine has programs and no table of hosts', async () => {
  const { page, complaints } = await open(browser, reportUrl);
  await chooseTab(page, 'Programs');
  await page.locator('#programs tbody tr').first().waitFor();
  expect(await page.locator('#hosts').count()).toBe(0);
  const server = page.locator('#programs tbody tr', { hasText: 'the server' });
  const cpus = Number(await server.first().locator('td').nth(1).textContent());
  expect(cpus).toBeGreaterThan(0.01);
  // A level has other shares than the whole run.
  await page.locator('.window button').filter({ hasText: /^8$/ }).click();
  await page.waitForFunction((before) => Number(document.querySelector('#programs tbody tr td:nth-child(2)')?.textContent) !== before, cpus);
  expect(complaints).toEqual([]);
  await page.close();
});
