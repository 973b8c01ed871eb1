import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TimelineHead } from '../../src/data/model.ts';
import { chooseTab, headOf, HOSTILE, launch, open, reportHtml, reportUrl, variant } from './report.ts';

let browser: Browser;
const head = headOf(reportHtml);
const levels = head.run.levels.filter((level) => level.purpose === 'sweep');
const [first, second] = levels;
if (!first || !second) throw new Error('the report has fewer than two levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const STATES = ['cpu', 'lock', 'file_sync', 'net_receive'];
const COLORS: Record<string, string> = { cpu: '#2f7fb8', lock: '#a2559c', file_sync: '#9c4331' };
const BUCKETS = 40;
const [CELLS, SINGLES] = [700_000, 700_001];
const LEFT = 168;
/** The height of a row of threads, and where the first one begins. */
const [THREAD, TOP] = [15, 34 + 24];

/**
 * Forty buckets over the first two levels: connections (tids 1000, 1001, …) are on CPUs in the first half and wait for locks in the second, except for one bucket
 * of file syncs; a purge thread (2000) waits for locks. One connection waits in its middle, woken by the purge thread.
 */
function reportOf(connections: number, change: (timeline: TimelineHead) => void = () => {}): { url: string; remove: () => void } {
  const [begin, end] = [first!.window.begin_ns, second!.window.end_ns];
  const edges_ns = Array.from({ length: BUCKETS + 1 }, (_, edge) => begin + Math.round(((end - begin) * edge) / BUCKETS));
  const bucket_ms = (end - begin) / BUCKETS / 1e6;
  const stateAt = (bucket: number): number => (bucket === 30 ? 2 : bucket < BUCKETS / 2 ? 0 : 1);
  const cells = Array.from({ length: connections }, () => Array.from({ length: BUCKETS }, (_, bucket) => stateAt(bucket))).flat();
  cells.push(...Array.from({ length: BUCKETS }, () => 1));
  const times = STATES.map((_, state) => cells.filter((cell) => cell === state).map(() => Math.round(bucket_ms)));
  const list = Array.from({ length: connections }, (_, place) => ({ tid: 1000 + place, name: `conn_${place}`, role: 'connection', first: 0, buckets: BUCKETS }));
  list.push({ tid: 2000, name: 'ib_purge', role: 'purge', first: 0, buckets: BUCKETS });
  const middle_us = Math.round((begin + (end - begin) / 2 - head.origin_ns) / 1e3);
  const counts = list.map((_, place) => (place === 0 ? 2 : 0));
  // A wait of 40 ms that ends in the middle, and a sample 20 ms later.
  const singles = [counts, [middle_us, middle_us + 20_000], [1, 0], [40_000, 0], [80_000, 10_000], [0, 1], [2000, NaN], [2, NaN]];
  return variant(
    (changed) => {
      changed.timeline = {
        states: STATES,
        edges_ns,
        list,
        block: CELLS,
        note: '',
        singles: {
          classes: ['', 'row_lock'],
          functions: ['lock_wait(que_thr_t*)', 'row_search_mvcc', 'lock_release(trx_t*)'],
          sites: [[1, 0, 1], [0, 1], [0, 2]],
          count: 2,
          block: SINGLES,
          note: '',
        },
      };
      delete changed.threads;
      change(changed.timeline);
    },
    undefined,
    { [CELLS]: [cells.map((state) => 1 << state), ...times], [SINGLES]: singles },
  );
}

async function opened(url: string, width = 1280): Promise<{ page: Page; section: Locator; canvas: Locator; complaints: string[] }> {
  const { page, complaints } = await open(browser, `${url}#threads`, width);
  const section = page.locator('#timeline');
  const canvas = section.locator('canvas');
  await canvas.waitFor();
  await canvas.scrollIntoViewIfNeeded();
  return { page, section, canvas, complaints };
}

/** Part of the plot's pixels, from one part of its width to another, that are of a state's colour. */
function part(canvas: Locator, state: string, from = 0, to = 1): Promise<number> {
  const color = COLORS[state] as string;
  return canvas.evaluate(
    (drawn, box) => {
      const canvas = drawn as HTMLCanvasElement;
      const ratio = devicePixelRatio;
      const left = Math.round(box.left * ratio);
      const wide = canvas.width - left;
      const [x, y] = [left + Math.round(wide * box.from), Math.round(34 * ratio)];
      const { data } = (canvas.getContext('2d') as CanvasRenderingContext2D).getImageData(x, y, Math.max(1, Math.round(wide * (box.to - box.from))), canvas.height - y);
      const rgb = [1, 3, 5].map((at) => parseInt(box.color.slice(at, at + 2), 16)) as [number, number, number];
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        count += Number(Math.abs((data[at] ?? 0) - rgb[0]) + Math.abs((data[at + 1] ?? 0) - rgb[1]) + Math.abs((data[at + 2] ?? 0) - rgb[2]) < 12);
      }
      return (count * 4) / data.length;
    },
    { color, left: LEFT, from, to },
  );
}

const spanOf = async (canvas: Locator) => ({ from: Number(await canvas.getAttribute('data-from')), to: Number(await canvas.getAttribute('data-to')) });

async function drag(page: Page, canvas: Locator, from: number, to: number): Promise<void> {
  const box = (await canvas.boundingBox())!;
  const x = (of: number) => box.x + LEFT + (box.width - LEFT) * of;
  await page.mouse.move(x(from), box.y + 70);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), box.y + 72);
  await page.mouse.move(x(to), box.y + 72);
  await page.mouse.up();
}

test('a traced run shows its own threads over time, and their shares add up', async () => {
  expect(head.timeline, 'the report holds no timeline: can this machine trace?').toBeDefined();
  const { page, section, complaints } = await opened(reportUrl);
  const shares = (await section.locator('ul b').allTextContents()).map((text) => parseFloat(text));
  const sum = shares.reduce((all, value) => all + value, 0);
  expect(sum).toBeGreaterThan(96);
  expect(sum).toBeLessThan(104);
  expect(await section.locator('.count').textContent()).toBe(`${head.timeline!.list.length} of ${head.timeline!.list.length} threads`);
  expect(complaints).toEqual([]);
  await page.close();
});

test('states are drawn where the threads were in them, and one that lasted for one bucket is seen', async () => {
  const changed = reportOf(3);
  const { page, canvas } = await opened(changed.url);
  const box = (await canvas.boundingBox())!;
  // The plot begins a little before the first level and ends with the run: the buckets' places are asked for.
  const at = await spanOf(canvas);
  const place = (bucket: number) => {
    const [begin, end] = [first!.window.begin_ns, second!.window.end_ns].map((ns) => (ns - head.origin_ns) / 1e9) as [number, number];
    return (begin + ((end - begin) * bucket) / BUCKETS - at.from) / (at.to - at.from);
  };
  expect(box.width).toBeGreaterThan(800);
  expect(await part(canvas, 'cpu', place(1), place(19))).toBeGreaterThan(0.6);
  expect(await part(canvas, 'cpu', place(21), place(39))).toBe(0);
  expect(await part(canvas, 'lock', place(21), place(29))).toBeGreaterThan(0.8);
  expect(await part(canvas, 'file_sync', place(30.1), place(30.9))).toBeGreaterThan(0.6);
  await page.close();
  changed.remove();
});

test('a drag, the wheel and the keyboard zoom, the page follows, and Escape shows everything', async () => {
  const changed = reportOf(3);
  const { page, section, canvas } = await opened(changed.url);
  const whole = await spanOf(canvas);
  await drag(page, canvas, 0.25, 0.75);
  const half = await spanOf(canvas);
  expect(half.to - half.from).toBeCloseTo((whole.to - whole.from) / 2, 1);
  await expect.poll(() => section.locator('.window').textContent()).toMatch(/ to /);
  await expect.poll(() => page.locator('#explorer .cursor').textContent()).not.toContain('0:00.0');

  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await expect.poll(async () => (await spanOf(canvas)).to - (await spanOf(canvas)).from).toBeLessThan((half.to - half.from) * 0.6);

  await section.getByRole('application').focus();
  const before = await spanOf(canvas);
  await page.keyboard.press('+');
  const closer = await spanOf(canvas);
  expect(closer.to - closer.from).toBeCloseTo((before.to - before.from) / 2, 3);
  await page.keyboard.press('ArrowRight');
  expect((await spanOf(canvas)).from).toBeGreaterThan(closer.from);
  await page.keyboard.press('Escape');
  expect(await spanOf(canvas)).toEqual(whole);
  await page.close();
  changed.remove();
});

test('a level that is chosen elsewhere in the page is what the timeline shows', async () => {
  const changed = reportOf(3);
  const { page, canvas } = await opened(changed.url);
  await chooseTab(page, 'Levels');
  await page.locator('.levels tbody tr').first().click();
  const seconds = (ns: number) => (ns - head.origin_ns) / 1e9;
  await expect.poll(async () => (await spanOf(canvas)).to).toBeLessThan(seconds(second!.window.begin_ns));
  await page.close();
  changed.remove();
});

test('zoomed in, a single wait shows its functions and its waker, and a sample where it ran', async () => {
  const changed = reportOf(3);
  const { page, section, canvas, complaints } = await opened(changed.url);
  await section.getByRole('application').focus();
  const middle = ((first!.window.begin_ns + second!.window.end_ns) / 2 - head.origin_ns) / 1e9;
  for (let step = 0; step < 12; step++) {
    const { from, to } = await spanOf(canvas);
    if (to - from < 0.3) break;
    const part = Math.min(0.94, Math.max(0.06, (middle - from) / (to - from)));
    await drag(page, canvas, Math.max(0, part - 0.1), Math.min(1, part + 0.1));
  }
  const box = (await canvas.boundingBox())!;
  const { from, to } = await spanOf(canvas);
  expect(to - from).toBeLessThan(1);
  const x = (t: number) => box.x + LEFT + ((box.width - LEFT) * (t - from)) / (to - from);
  const tip = section.locator('.tip');
  await expect.poll(async () => {
    await page.mouse.move(x(middle - 0.02), box.y + TOP + THREAD / 2);
    await page.mouse.move(x(middle - 0.021), box.y + TOP + THREAD / 2);
    return tip.textContent();
  }).toContain('row lock');
  const text = (await tip.textContent()) ?? '';
  expect(text).toContain('lock, 40 ms');
  expect(text).toMatch(/lock_wait\(que_thr_t\*\).*row_search_mvcc.*woken by thread 2000, purge.*lock_release\(trx_t\*\)/s);
  expect(text).toContain('It stands for 80 ms');
  await page.mouse.move(x(middle + 0.02), box.y + TOP + THREAD / 2);
  await expect.poll(() => tip.textContent()).toContain('found on a CPU');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('roles open and shut by mouse and by keyboard, and the filter is that of the table of threads', async () => {
  const changed = reportOf(30);
  const { page, section, canvas } = await opened(changed.url);
  const height = async () => (await canvas.boundingBox())!.height;
  const shut = await height();
  await canvas.click({ position: { x: 40, y: 50 } });
  await expect.poll(height).toBeGreaterThan(shut + 28 * THREAD);
  await section.getByRole('application').focus();
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => section.locator('.visually-hidden').textContent()).toContain('30 threads');
  await page.keyboard.press('Enter');
  await expect.poll(height).toBe(shut);
  await page.locator('#filters').getByLabel('name', { exact: true }).fill('conn_7');
  await expect.poll(() => section.locator('.count').textContent()).toBe('1 of 31 threads');
  await section.getByRole('button', { name: 'show all' }).click();
  await page.locator('#filters').getByLabel('role').selectOption('purge');
  await expect.poll(() => section.locator('.count').textContent()).toBe('1 of 31 threads');
  expect(await part(canvas, 'cpu')).toBe(0);
  expect(await part(canvas, 'lock')).toBeGreaterThan(0.5);
  await page.close();
  changed.remove();
});

test('names that are markup stay text, and the part is readable in a narrow window and in the dark', async () => {
  const changed = reportOf(2, (timeline) => {
    timeline.list[0]!.name = HOSTILE;
    timeline.list[0]!.role = HOSTILE;
  });
  const { page, complaints } = await open(browser, `${changed.url}#threads`, 420, 'dark');
  const canvas = page.locator('#timeline canvas');
  await canvas.waitFor();
  await canvas.hover({ position: { x: 300, y: 60 } });
  expect(await page.locator('#timeline .tip').textContent()).toContain(HOSTILE);
  expect(await page.evaluate(() => (window as { broken?: number }).broken)).toBeUndefined();
  expect((await canvas.boundingBox())!.width).toBeLessThanOrEqual(420);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
