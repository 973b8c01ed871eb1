/** What a server, a load or a reader wrote is text in `whyso serve`, however it looks and however long it is. */

import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOSTILE, chooseTab } from '../report.ts';
import { ID, ServeSession } from './session.ts';

const ESCAPES = '\u001b[31mred\u001b]0;title\u0007\u0000\u202egnirts';
const LONG = 1_000_000;

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID], (_folder, runs) => {
    const run = join(runs, ID);
    appendFileSync(join(run, 'notes.jsonl'), `${JSON.stringify({ t_ns: 0, text: HOSTILE + ESCAPES + 'x'.repeat(LONG) })}\n`);
    writeFileSync(join(run, 'server.log'), `${'y'.repeat(LONG)}\n${HOSTILE}${ESCAPES}\n`);
  });
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

const widthOver = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;

describe('hostile text', () => {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [2560, 'light'], [2560, 'dark']] as const) {
    it(`is text at ${width} pixels, ${scheme}`, async () => {
      const { page, complaints } = await session.runPage('', width, scheme);
      await page.locator('.events summary').click();
      await page.locator('.events td', { hasText: 'onerror' }).waitFor();
      await chooseTab(page, 'Settings');
      await page.locator('#log summary').click();
      await page.locator('#log pre').waitFor();
      expect(await page.locator('#log pre').textContent()).toContain(HOSTILE);
      expect(await page.evaluate(() => 'broken' in window)).toBe(false);
      expect(await page.locator('img').count()).toBe(0);
      expect(await page.evaluate(widthOver)).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    });
  }

  it('under the pointer does not push the charts away', async () => {
    const { page } = await session.runPage();
    const chart = page.locator('.chart').first();
    const before = (await chart.boundingBox())!;
    // The note lies at the clock's beginning, at the left edge of the run or before it.
    await chart.locator('.u-over').hover({ position: { x: 4, y: 60 } });
    await page.locator('#explorer .cursor b').waitFor();
    const after = (await chart.boundingBox())!;
    expect(after.y - before.y).toBeLessThan(80);
  });
});
