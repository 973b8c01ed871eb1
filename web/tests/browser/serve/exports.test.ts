/** What charts of `whyso serve` are exported as. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, ServeSession, bytesOf, exportAs, shown } from './session.ts';

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID, `${ID}-again`]);
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

interface Head {
  series: { slot: number; source: string; metric: string; instance: string }[];
}
interface Lines {
  columns: (number | null)[][];
}

const [FROM, TO] = [3, 12];
const chartOf = (source: string, metric: string, mode = 'rate') => JSON.stringify([[metric, [['server', source, metric, null]], mode, 5, 0, 0]]);
const windowOf = (charts: string) => `?${new URLSearchParams({ from: String(FROM), to: String(TO), charts }).toString()}`;

describe('an exported chart', () => {
  it.each(['light', 'dark'] as const)('is a PNG of the chart, its title and its legend on light paper, from a %s page', async (scheme) => {
    const { page, complaints } = await session.runPage('', 1280, scheme);
    const coming = page.waitForEvent('download');
    await exportAs(page, 'PNG');
    const png = await bytesOf(coming);
    expect([...png.subarray(0, 8)]).toEqual([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    const found = await page.evaluate(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
      const drawn = new OffscreenCanvas(image.width, image.height).getContext('2d', { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
      drawn.drawImage(image, 0, 0);
      const pixels = (top: number, height: number) => new Uint32Array(drawn.getImageData(0, top, image.width, height).data.buffer);
      const colors = (top: number, height: number) => new Set(pixels(top, height)).size;
      const all = drawn.getImageData(0, 0, image.width, image.height).data;
      let light = 0;
      for (let at = 0; at < all.length; at += 4) if ((all[at] ?? 0) + (all[at + 1] ?? 0) + (all[at + 2] ?? 0) > 600) light++;
      // The title's rows, the legend's, and the plot, at two pixels for one.
      return { width: image.width, title: colors(4, 40), legend: colors(50, 24), plot: colors(90, image.height - 90), light: (4 * light) / all.length };
    }, png.toString('base64'));
    expect(found.width).toBe(1920);
    for (const part of [found.title, found.plot, found.legend]) expect(part).toBeGreaterThan(4);
    expect(found.light).toBeGreaterThan(0.8);
    expect(complaints).toEqual([]);
  });

  it('may be one of those that are drawn by level', async () => {
    const { page, complaints } = await session.runPage('', 1280, 'dark');
    for (const [id, tab, column, row, legend] of [
      ['scale-title', 'Over time', 'transactions_per_s', '"sweep"', 'best level repeated at the end'],
      ['budget-title', 'Levels', 'share', '"cpu"', 'work on a CPU'],
      ['functions-title', 'Functions', 'cpus', '"', 'all others'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click();
      const chart = page.locator(`section[aria-labelledby=${id}]`);
      const title = (await chart.locator('h2').textContent()) ?? '';
      const files: Record<string, Buffer> = {};
      for (const kind of ['SVG', 'PNG', 'CSV']) {
        const coming = page.waitForEvent('download');
        await exportAs(page, kind, chart);
        files[kind] = await bytesOf(coming);
      }
      const svg = files['SVG']?.toString() ?? '';
      expect(svg.startsWith('<svg xmlns="http://www.w3.org/2000/svg"')).toBe(true);
      expect(svg).toContain(title);
      expect(svg).toContain(legend);
      // The paper is light, whatever the page is.
      expect(svg).toMatch(/<rect width="100%" height="100%" fill="#fdfdfc"/);
      expect(svg).not.toMatch(/var\(|class=/);
      const png = files['PNG']?.toString('base64') ?? '';
      // Both are pictures of more than paper.
      for (const source of [`data:image/png;base64,${png}`, `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`]) {
        const colors = await page.evaluate(async (from) => {
          const image = new Image();
          image.src = from;
          await image.decode();
          const drawn = new OffscreenCanvas(image.width, image.height).getContext('2d') as OffscreenCanvasRenderingContext2D;
          drawn.drawImage(image, 0, 0);
          return new Set(new Uint32Array(drawn.getImageData(0, 0, image.width, image.height).data.buffer)).size;
        }, source);
        expect(colors).toBeGreaterThan(20);
      }
      const [head = '', ...rows] = (files['CSV']?.toString() ?? '').trimEnd().split('\n');
      expect(head.split(',')).toContain(column);
      expect(rows.length).toBeGreaterThan(2);
      expect(rows.every((one) => one.replace(/"([^"]|"")*"/g, 'text').split(',').length === head.split(',').length)).toBe(true);
      expect(rows.some((candidate) => candidate.includes(row))).toBe(true);
      await exportAs(page, 'to the report', chart);
    }
    await page.getByRole('link', { name: 'report (3)' }).click();
    expect(await page.locator('img[src^="data:image/svg"]').count()).toBe(3);
    expect(complaints).toEqual([]);
  });

  it('has the values as CSV that the API gives', async () => {
    for (const mode of ['rate', 'raw']) {
      const { page } = await session.runPage(windowOf(chartOf('status', 'Questions', mode)));
      const coming = page.waitForEvent('download');
      await exportAs(page, 'CSV');
      const rows = (await bytesOf(coming)).toString().trimEnd().split('\n').slice(1).map((row) => row.split(','));
      const expected = await page.evaluate(async ([id, from, to, how]) => {
        const head = (await (await fetch(`/api/v1/runs/${id}`)).json()) as Head;
        const one = head.series.find((series) => series.source === 'status' && series.metric === 'Questions');
        const query = `numbers=${one?.slot}&from_s=${from}&to_s=${to}&px=2000&mode=${how}&json=true`;
        return (await (await fetch(`/api/v1/runs/${id}/series?${query}`)).json()) as Lines;
      }, [ID, FROM, TO, mode] as const);
      const [times = [], values = []] = expected.columns;
      const within = times.flatMap((t, at) => (t !== null && FROM <= t && t < TO ? [[t, values[at]]] : []));
      expect(rows.length).toBeGreaterThan(5);
      expect(rows.map((row) => [Number(row[0]), row[3] === '' ? null : Number(row[3])])).toEqual(within);
    }
  });

  it('has a link that opens only this chart, over the same window', async () => {
    const { page, complaints } = await session.runPage(windowOf(chartOf('status', 'Questions')));
    const chart = page.locator('.chart').first();
    await chart.getByRole('button', { name: 'per transaction' }).click();
    await chart.getByRole('button', { name: 'log', exact: true }).click();
    await exportAs(page, 'copy link');
    await chart.locator('.export summary', { hasText: 'link copied' }).waitFor();
    const link = new URL(await page.evaluate(() => navigator.clipboard.readText()));
    expect(link.origin).toBe(session.origin);
    const window_ = await shown(page);
    const again = await session.runPage(link.search);
    expect(await again.page.locator('.chart').count()).toBe(1);
    expect(await shown(again.page)).toBe(window_);
    const other = again.page.locator('.chart');
    expect(await other.locator('h3').textContent()).toBe('Questions');
    expect(await other.locator('[aria-pressed=true]').allTextContents()).toEqual(['per transaction', 'log']);
    expect(await other.locator('.legend').textContent()).toBe(await chart.locator('.legend').textContent());
    expect([...complaints, ...again.complaints]).toEqual([]);
  });

  it('shows its link where the page may not write to the clipboard', async () => {
    const { page } = await session.runPage();
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await exportAs(page, 'copy link');
    const field = page.getByLabel('link to this chart');
    expect(await field.inputValue()).toMatch(/^http:.*\/runs\/.*charts=/);
    expect(await field.evaluate((one) => document.activeElement === one)).toBe(true);
  });

  it('of a comparison has all of that, too', async () => {
    const { page } = await session.at(`/compare?first=${ID}&second=${ID}-again&anyway=true`);
    const chart = page.locator('.chart').first();
    await chart.locator('.legend b').nth(1).waitFor();
    for (const [kind, begin] of [['CSV', 'seconds,series'], ['SVG', '<svg xmlns'], ['PNG', '\u0089PNG']] as const) {
      const coming = page.waitForEvent('download');
      await exportAs(page, kind, chart);
      expect((await bytesOf(coming)).toString('latin1').startsWith(begin)).toBe(true);
    }
    await exportAs(page, 'copy link', chart);
    await chart.locator('.export summary', { hasText: 'link copied' }).waitFor();
    const link = new URL(await page.evaluate(() => navigator.clipboard.readText()));
    expect([link.pathname, link.searchParams.get('first'), link.searchParams.get('second')]).toEqual(['/compare', ID, `${ID}-again`]);
    expect(link.searchParams.get('charts')).toContain(await chart.locator('h3').evaluate((head) => head.firstChild?.textContent ?? '?'));
    await exportAs(page, 'to the report', chart);
    await page.getByRole('link', { name: 'report (1)' }).waitFor();
    await chart.getByRole('button', { name: 'log', exact: true }).click();
    expect(await chart.getByRole('button', { name: 'log', exact: true }).getAttribute('aria-pressed')).toBe('true');
    // Under the pointer every line says its value, in every chart.
    await chart.locator('.u-over').hover({ position: { x: 200, y: 60 } });
    await page.waitForFunction(() => document.querySelectorAll('.chart .legend.at').length === document.querySelectorAll('.chart').length);
  });
});
