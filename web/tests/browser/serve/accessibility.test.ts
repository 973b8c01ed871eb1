/** No page of `whyso serve` keeps anybody from using it, as far as axe-core can see. That of a recording that runs: live.test.ts. */

import { cpSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { barriersOf, LOOKS } from '../axe.ts';
import { ID, ServeSession } from './session.ts';

const OTHER = dirname(resolve(process.env['OTHER_REPORT_HTML'] ?? ''));

let some: ServeSession;
let none: ServeSession;

beforeAll(async () => {
  some = await ServeSession.start([ID], (_folder, runs) => cpSync(OTHER, join(runs, basename(OTHER)), { recursive: true }));
  none = await ServeSession.start([]);
});

afterAll(async () => {
  await some?.stop();
  await none?.stop();
});

afterEach(async () => {
  await some.closePages();
  await none.closePages();
});

describe.each(LOOKS)('in the %s, %i pixels wide', (scheme, width) => {
  it('an empty list has no barrier, and shows how to begin', async () => {
    const { page } = await none.at('/', width, scheme);
    await page.getByText('No run is recorded in').waitFor();
    expect(await page.locator('dt code').count()).toBe(3);
    expect(await barriersOf(page)).toEqual([]);
  });

  it('a list of runs has none', async () => {
    const { page } = await some.at('/', width, scheme);
    await page.getByRole('heading', { name: 'Latest verdict' }).waitFor();
    await page.locator('button.cause').nth(1).waitFor();
    await page.locator('tbody input[type=checkbox]').first().check();
    expect(await barriersOf(page)).toEqual([]);
  });

  it('a run has none', async () => {
    const { page } = await some.runPage('', width, scheme);
    await page.getByRole('button', { name: 'name and tags…' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'name and tags…' }).click();
    await page.keyboard.press('n');
    expect(await barriersOf(page)).toEqual([]);
  });

  it('a comparison has none', async () => {
    const { page } = await some.at(`/compare?first=${ID}&second=${basename(OTHER)}`, width, scheme);
    await page.locator('#flame canvas').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });

  it('the report that is being written has none', async () => {
    const { page } = await some.at('/report', width, scheme);
    await page.locator('main').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });
});
