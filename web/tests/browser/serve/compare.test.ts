/** Runs beside each other in `whyso serve`. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, Served } from './served.ts';

const other = `${ID}-again`;

let served: Served;

beforeAll(async () => {
  served = await Served.start([ID, other]);
});

afterAll(() => served?.stop());

afterEach(() => served.closePages());

describe('a comparison', () => {
  it('shows tables and draws what differs, for both runs', async () => {
    const { page, complaints } = await served.at(`/compare?first=${ID}&second=${other}`);
    await page.locator('.chart canvas').first().waitFor();
    // The copy is the same start: that is told, and nothing is compared.
    await page.locator('[role=alert], main table').first().waitFor();
    expect(await page.locator('.sides a').count()).toBeGreaterThan(1);
    expect(complaints.filter((one) => !one.includes('400'))).toEqual([]);
  });
});
