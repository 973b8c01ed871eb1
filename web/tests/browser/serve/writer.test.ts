/** The report that is written in `whyso serve`. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOSTILE } from '../report.ts';
import { ID, ServeSession, bytesOf, exportAs } from './session.ts';

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID]);
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

async function written() {
  const opened = await session.runPage();
  const { page } = opened;
  for (const chart of [0, 1]) await exportAs(page, 'to the report', page.locator('.chart').nth(chart));
  await page.getByRole('link', { name: 'report (2)' }).click();
  await page.getByRole('button', { name: 'add text' }).click();
  await page.getByLabel('text', { exact: true }).last().fill(`# Why\n\n**Because** ${HOSTILE}`);
  await page.getByLabel('title of the report').fill('Monday <b>');
  await page.getByLabel('title of the report').blur();
  return opened;
}

describe('the report writer', () => {
  it('exports one HTML file of charts and text, without a script', async () => {
    const { page, complaints } = await written();
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'export as HTML' }).click();
    const html = (await bytesOf(coming)).toString();
    expect(html.match(/<svg xmlns/g)?.length).toBe(2);
    expect(html).toContain('<strong>Because</strong> &lt;');
    expect(html).toContain('<title>Monday &lt;b&gt;</title>');
    expect(html).not.toMatch(/<script|<img/);
    expect(await page.evaluate(() => 'broken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  it('is printed to PDF, without its buttons', async () => {
    const { page, complaints } = await written();
    const pdf = (await page.pdf({ format: 'A4', printBackground: true })).toString('latin1');
    expect(pdf.startsWith('%PDF-')).toBe(true);
    expect(pdf.match(/\/Type\s*\/Page\b/g)?.length).toBeGreaterThanOrEqual(1);
    await page.emulateMedia({ media: 'print' });
    for (const name of ['export as HTML', 'print', 'add text', 'move up', 'remove']) expect(await page.getByRole('button', { name, exact: true }).first().isVisible(), name).toBe(false);
    expect(await page.getByRole('navigation').isVisible()).toBe(false);
    expect(await page.locator('textarea').isVisible()).toBe(false);
    expect(await page.getByRole('heading', { name: 'Monday <b>' }).isVisible()).toBe(true);
    expect(await page.locator('figure img').count()).toBe(2);
    expect(complaints).toEqual([]);
  });

  it('keeps what was written, its order too, until it is cleared', async () => {
    const { page } = await written();
    const titles = () => page.locator('.part').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    const before = await titles();
    await page.getByRole('button', { name: 'move up' }).nth(1).click();
    expect(await titles()).toEqual([before[1], before[0], before[2]]);
    await page.reload();
    expect(await titles()).toEqual([before[1], before[0], before[2]]);
    await page.getByRole('link', { name: 'open it' }).first().click();
    // The link leads to the chart itself: it is in sight, and read.
    await page.locator('.chart .legend b').first().waitFor();
    expect(await page.locator('.chart h3').allTextContents()).toEqual([before[1]]);
    await page.goBack();
    await page.getByRole('button', { name: 'clear…' }).click();
    await page.getByRole('button', { name: 'no', exact: true }).click();
    expect((await titles()).length).toBe(3);
    await page.getByRole('button', { name: 'clear…' }).click();
    await page.getByRole('button', { name: 'yes', exact: true }).click();
    expect((await titles()).length).toBe(0);
  });
});
