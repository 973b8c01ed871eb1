/** No part of a report keeps anybody from using it, as far as axe-core can see. */

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { barriersOf, LOOKS } from './axe.ts';
import { launch, open, reportUrl } from './report.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

describe('the report', () => {
  test.each(LOOKS)('has no barrier behind any of its tabs: %s, %i pixels wide', async (scheme, width) => {
    const { page } = await open(browser, reportUrl, width, scheme);
    for (const summary of await page.locator('#causes summary').all()) await summary.click();
    for (const tab of await page.getByRole('tab').all()) {
      await tab.click();
      expect(await barriersOf(page), (await tab.textContent()) ?? '').toEqual([]);
    }
    await page.close();
  });
});
