import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FlameHead } from '../../src/data/model.ts';
import { headOf, HOSTILE, launch, open, reportHtml, reportUrl, variant } from './report.ts';

let browser: Browser;
const levels = headOf(reportHtml).run.levels.filter((level) => level.purpose === 'sweep');
const [first, second] = levels;
if (!first || !second) throw new Error('the report has fewer than two levels');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

/** A call: depth, name, module, and exclusive milliseconds of connections in cpu and lock, at the first level and at the second. */
type Call = [number, string, string, number, number, number, number];

const CALLS: Call[] = [
  [0, '<Total>', '', 0, 0, 0, 0],
  [1, 'main', 'mariadbd', 0, 0, 0, 0],
  [2, 'do_command(THD*, bool)', 'mariadbd', 100, 0, 100, 0],
  [3, 'log_write_up_to', 'mariadbd', 100, 0, 100, 0],
  [4, 'futex_wait', '[kernel]', 0, 200, 0, 900],
  [3, 'row_search', 'mariadbd', 300, 0, 100, 0],
  [4, 'memcpy', 'libc.so.6', 100, 0, 100, 0],
  [1, 'purge', 'mariadbd', 400, 0, 200, 100],
];

/** The report with these calls; the background's columns hold a tenth of the connections', the observer's CPU time is by call in milliseconds. */
function reportOf(calls: Call[], change: (flame: FlameHead) => void = () => {}, observer: number[] = []): { url: string; remove: () => void } {
  const [tree, ...times] = [600_000, 600_001, 600_002];
  const modules = [...new Set(calls.map(([, , module]) => module))];
  const keys = [...new Set(calls.map(([, name, module]) => JSON.stringify([name, modules.indexOf(module)])))];
  const of = (at: number) => {
    const [cpu, lock] = [3 + 2 * at, 4 + 2 * at].map((place) => calls.map((call) => (call[place] as number) * 1000)) as [number[], number[]];
    const none = calls.map(() => 0);
    return [cpu, lock, none, none, cpu.map((us) => us / 10), none, none, none, calls.map((_, call) => (observer[call] ?? 0) * 1000), none, none, none];
  };
  const columns = [of(0), of(1)];
  const flame: FlameHead = {
    metrics: ['cpu', 'lock', 'io', 'other'],
    knows_lines: false,
    threads: ['connection', 'background', 'observer'],
    modules,
    names: keys.map((key) => JSON.parse(key) as [string, number]),
    nodes: calls.length,
    block: tree as number,
    folded: 0,
    folded_below: 0.0001,
    observer_share: 0,
    samples: null,
    levels: [first, second].map((level, at) => ({
      level: level?.index ?? 0,
      seconds: 10,
      transactions: at === 1 ? 2000 : 1000,
      block: times[at] as number,
      columns: (columns[at] as number[][]).map((column) => ({ total_us: column.reduce((sum, value) => sum + value, 0), half_us: 1000, samples: 50 })),
    })),
  };
  change(flame);
  const places = new Map(keys.map((key, place) => [key, place]));
  const names = calls.map(([, name, module]) => places.get(JSON.stringify([name, modules.indexOf(module)])) as number);
  return variant(
    (head) => {
      head.flame = flame;
      head.explanation.about = first?.index ?? 0;
      for (const level of head.run.levels) level.result.transactions = level.index === second?.index ? 2000 : 1000;
    },
    undefined,
    { [tree as number]: [calls.map(([depth]) => depth), names], [times[0] as number]: columns[0] as number[][], [times[1] as number]: columns[1] as number[][] },
  );
}

const ROW = 17;
const graph = (page: Page) => page.locator('#flame');
const zoomedOf = (section: Locator) => section.locator('canvas').getAttribute('data-zoomed');
const tip = (section: Locator) => section.locator('.tip').textContent();

/** Where a part of a row lies: rows from the foot, parts of the width. */
async function place(section: Locator, row: number, part: number): Promise<{ x: number; y: number }> {
  const canvas = section.locator('canvas');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  if (!box) throw new Error('the graph has no place');
  return { x: box.width * part, y: box.height - (row + 0.5) * ROW };
}

async function hover(section: Locator, row: number, part: number): Promise<string> {
  await section.locator('canvas').hover({ position: await place(section, row, part) });
  await section.locator('.tip').waitFor();
  return (await tip(section)) ?? '';
}

/** The colour at a place of the canvas, as red, green, blue. */
async function color(section: Locator, row: number, part: number): Promise<[number, number, number]> {
  const at = await place(section, row, part);
  return section.locator('canvas').evaluate((canvas, { x, y }) => {
    const drawn = canvas as HTMLCanvasElement;
    const scale = drawn.width / drawn.clientWidth;
    // Above the label.
    const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D;
    probe.drawImage(drawn, -Math.round(x * scale), -Math.round((y - 7) * scale));
    const { data } = probe.getImageData(0, 0, 1, 1);
    return [data[0], data[1], data[2]] as [number, number, number];
  }, at);
}

test('the run was sampled, and its stacks are drawn', async () => {
  const { flame } = headOf(reportHtml);
  expect(flame, 'the report holds no stacks: can this machine take them?').toBeDefined();
  expect(flame?.levels.map((level) => level.level)).toEqual(levels.map((level) => level.index));
  const { page, complaints } = await open(browser, `${reportUrl}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  expect(await section.getByRole('application').getAttribute('aria-label')).toMatch(/Most time in functions themselves: \S/);
  await section.getByRole('button', { name: 'CPU' }).click();
  expect(await hover(section, 0, 0.5)).toContain('all time on CPUs');
  expect(complaints).toEqual([]);
  await page.close();
});

test('hovering says the function, its module, both times and their parts', async () => {
  const changed = reportOf(CALLS);
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await expect.poll(() => section.locator('h2').textContent()).toContain('time on CPUs, at');
  expect(await hover(section, 2, 0.2)).toMatch(/do_command\(THD\*, bool\).*mariadbd.*600 ms.*60 %.*100 ms.*10 %/s);
  // Children stand in the order of the tree: the purge thread's frame is to the right.
  expect(await hover(section, 1, 0.9)).toMatch(/^purge/);
  expect(await hover(section, 4, 0.15)).toMatch(/^memcpy.*libc\.so\.6/);
  // The legend has the total with its interval, and the number of samples.
  expect(await section.textContent()).toContain('1 s ± 1 ms');
  expect(await section.textContent()).toContain('from 50 samples');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('metric, level and threads choose what is drawn', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.getByRole('button', { name: 'lock' }).click();
  expect(await hover(section, 0, 0.5)).toContain('200 ms');
  await section.getByLabel('level of the flame graph').selectOption({ index: 1 });
  await expect.poll(() => section.locator('.axis').textContent()).toContain('1 s lock wait');
  await section.getByLabel('threads of the flame graph').selectOption({ label: 'background threads' });
  await expect.poll(() => section.textContent()).toContain('No lock wait of background threads was sampled');
  await section.getByRole('button', { name: 'CPU' }).click();
  await section.getByLabel('threads of the flame graph').selectOption({ label: 'all threads' });
  await expect.poll(() => section.locator('.axis').textContent()).toContain('660 ms');
  await page.close();
  changed.remove();
});

test("whyso's own probes and queries are hidden, with their share, until they are switched on", async () => {
  const calls: Call[] = [...CALLS, [1, 'asm_exc_int3', '[kernel]', 0, 0, 0, 0]];
  const changed = reportOf(calls, (flame) => (flame.observer_share = 0.7), [...CALLS.map(() => 0), 2333]);
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await expect.poll(() => section.locator('.axis').textContent()).toContain('1 s');
  expect(await section.getByLabel('threads of the flame graph').locator('option').allTextContents()).toEqual(["connections' threads", 'background threads', 'all threads']);
  expect(await section.textContent()).toContain("Not shown: 70 % of the stacks' time, used by whyso's own probes and queries.");
  expect(await hover(section, 1, 0.9)).toMatch(/^purge/);
  const own = section.getByLabel("whyso's own time");
  expect(await own.isChecked()).toBe(false);
  await own.check();
  await expect.poll(() => section.locator('.axis').textContent()).toContain('3.33 s');
  expect(await hover(section, 1, 0.9)).toMatch(/^asm_exc_int3.*2.33 s/);
  expect(await section.textContent()).toContain('Included: 70 %');
  await section.getByLabel('threads of the flame graph').selectOption({ label: 'all threads' });
  await expect.poll(() => section.locator('.axis').textContent()).toContain('3.43 s');
  await own.uncheck();
  await expect.poll(() => section.locator('.axis').textContent()).toContain('1.1 s');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('where whyso took no time of the stacks, there is nothing to show', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  expect(await section.getByLabel("whyso's own time").count()).toBe(0);
  expect(await section.textContent()).not.toContain('probes');
  await page.close();
  changed.remove();
});

test('a click zooms, and a click beneath, the button and Escape zoom out', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  const canvas = section.locator('canvas');
  await canvas.waitFor();
  await canvas.click({ position: await place(section, 2, 0.3) });
  await expect.poll(() => zoomedOf(section)).toBe('2');
  // Of do_command, row_search and what it called is two thirds.
  expect(await hover(section, 3, 0.5)).toMatch(/^row_search/);
  await canvas.click({ position: await place(section, 3, 0.5) });
  await expect.poll(() => zoomedOf(section)).toBe('5');
  await canvas.click({ position: await place(section, 1, 0.5) });
  await expect.poll(() => zoomedOf(section)).toBe('1');
  await section.getByRole('application').focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => zoomedOf(section)).toBe('5');
  await section.getByRole('button', { name: 'zoom out' }).click();
  await expect.poll(() => zoomedOf(section)).toBe('0');
  await page.close();
  changed.remove();
});

test('the keyboard walks and zooms without a mouse, and the frame in focus is read out', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await section.getByRole('searchbox').focus();
  await page.keyboard.press('Tab');
  const focusText = () => section.locator('.visually-hidden').textContent();
  await expect.poll(focusText).toContain('all time on CPUs');
  await page.keyboard.press('ArrowUp');
  await expect.poll(focusText).toMatch(/^main/);
  await page.keyboard.press('ArrowRight');
  await expect.poll(focusText).toMatch(/^purge/);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await expect.poll(focusText).toMatch(/^row_search/);
  await page.keyboard.press('Enter');
  await expect.poll(() => zoomedOf(section)).toBe('5');
  await page.keyboard.press('ArrowDown');
  await expect.poll(focusText).toMatch(/^do_command/);
  await page.keyboard.press('Escape');
  await expect.poll(() => zoomedOf(section)).toBe('0');
  await page.close();
  changed.remove();
});

test('a search lights what matches, fades the rest and says what part of the time it holds', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  const [server, other] = [await color(section, 3, 0.15), await color(section, 1, 0.95)];
  await section.getByRole('searchbox').fill('LOG_write');
  await expect.poll(() => section.locator('.count').textContent()).toBe('1 function matches: 10 % of the time');
  expect(await color(section, 3, 0.05)).not.toEqual(server);
  expect(await color(section, 1, 0.95)).not.toEqual(other);
  await section.getByRole('searchbox').fill('no such function');
  await expect.poll(() => section.locator('.count').textContent()).toBe('0 functions match: 0 % of the time');
  await section.getByRole('searchbox').fill('');
  await expect.poll(() => color(section, 1, 0.95)).toEqual(other);
  await page.close();
  changed.remove();
});

describe.each(['light', 'dark'] as const)('%s', (scheme) => {
  test('compared with another level, red is more, blue is less and grey is the same', async () => {
    const changed = reportOf(CALLS);
    const { page, complaints } = await open(browser, `${changed.url}#functions`, 1280, scheme);
    const section = graph(page);
    await section.locator('canvas').waitFor();
    await section.getByLabel('level to compare with').selectOption({ index: 1 });
    await expect.poll(() => section.textContent()).toContain('blue is less and red is more than at');
    // A transaction took 0.4 ms in row_search and what it called at the first level, and 0.1 ms at the second.
    const [more, , moreBlue] = await color(section, 3, 0.4);
    expect(more).toBeGreaterThan(moreBlue + 30);
    expect(await hover(section, 3, 0.4)).toMatch(/with what it called, against .*\+300 µs per transaction ± /);
    // As a share, do_command itself is a tenth at the first level and a sixth at the second, and main itself nothing at either.
    await section.getByRole('button', { name: 'share in itself' }).click();
    await expect.poll(() => color(section, 2, 0.05).then(([red, , blue]) => blue - red)).toBeGreaterThan(30);
    const [red, green, blue] = await color(section, 1, 0.05);
    expect(Math.max(red, green, blue) - Math.min(red, green, blue)).toBeLessThan(30);
    expect(await hover(section, 2, 0.05)).toContain('−6.7 percentage points');
    expect(complaints).toEqual([]);
    await page.close();
    changed.remove();
  });
});

test('another run to compare with is compared with at once', async () => {
  const alike = first.users === 1 ? '1 user' : `${first.users} users`;
  const changed = reportOf(CALLS, (flame) => {
    const [own, theirs] = flame.levels;
    if (!own || !theirs) throw new Error('two levels were made');
    Object.assign(theirs, { level: null, name: `${alike} of run other` });
    flame.levels.push({ ...theirs, name: 'another level of run other' });
  });
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await expect.poll(() => section.locator('h2').textContent()).toContain(`, at ${alike}`);
  expect(await section.getByLabel('level to compare with').inputValue()).toBe('1');
  await expect.poll(() => section.textContent()).toContain(`than at ${alike} of run other`);
  expect(await hover(section, 3, 0.4)).toMatch(/against .* of run other: \+300 µs per transaction ± /);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a recording in which no level ended has one, and compares nothing', async () => {
  const changed = reportOf(CALLS, (flame) => {
    flame.levels.length = 1;
    Object.assign(flame.levels[0] ?? {}, { level: null, transactions: 0 });
  });
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await expect.poll(() => section.locator('h2').textContent()).toContain('time on CPUs, at the recording');
  expect(await section.textContent()).toContain('in 10 s, from 50 samples');
  expect(await section.getByLabel('level to compare with').count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('what too few samples cannot distinguish is grey', async () => {
  const changed = reportOf(CALLS, (flame) => {
    for (const level of flame.levels) for (const column of level.columns) column.half_us = 1e6;
  });
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await section.getByLabel('level to compare with').selectOption({ index: 1 });
  const colors = await Promise.all([color(section, 3, 0.4), color(section, 2, 0.05), color(section, 1, 0.9)]);
  for (const [red, green, blue] of colors) expect(Math.max(red, green, blue) - Math.min(red, green, blue)).toBeLessThan(30);
  await page.close();
  changed.remove();
});

test('if the page shows only a level, so does the graph', async () => {
  const changed = reportOf(CALLS);
  const { page } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await page.getByRole('button', { name: String(second.users), exact: true }).first().press('Enter');
  await expect.poll(() => section.locator('.axis').textContent()).toContain('600 ms');
  await page.close();
  changed.remove();
});

test('deep stacks are scrolled: the foot is seen first, and the keyboard brings the rest', async () => {
  const changed = reportOf(Array.from({ length: 120 }, (_, depth): Call => [depth, `function_${depth}`, 'mariadbd', depth === 119 ? 50 : 0, 0, 0, 0]));
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  expect(await hover(section, 3, 0.5)).toMatch(/^function_3 *mariadbd/);
  await section.getByRole('application').focus();
  for (let row = 0; row < 119; row++) await page.keyboard.press('ArrowUp');
  await expect.poll(() => section.locator('.visually-hidden').textContent()).toMatch(/^function_119/);
  const [mark, graphBox] = await Promise.all([section.locator('.focus').boundingBox(), section.getByRole('application').boundingBox()]);
  expect(Math.round((mark?.y ?? 0) - (graphBox?.y ?? 0))).toBe(0);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('names of functions are text, and nothing overflows', async () => {
  const calls = CALLS.map((call): Call => [call[0], `${HOSTILE.repeat(8)}${call[1]}`, HOSTILE, call[3], call[4], call[5], call[6]]);
  const changed = reportOf(calls);
  const { page, complaints } = await open(browser, `${changed.url}#functions`, 900);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  await hover(section, 1, 0.9);
  await hover(section, 2, 0.3);
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a run without stacks has no empty flame graph', async () => {
  const changed = variant((head) => {
    delete head.flame;
  });
  const { page } = await open(browser, `${changed.url}#functions`);
  expect(await page.locator('#flame').count()).toBe(0);
  await page.close();
  changed.remove();
});

/** A tree with this many distinct stacks, some thirty functions deep. */
function forest(stacks: number): Call[] {
  let seed = 3;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const calls: Call[] = [[0, '<Total>', '', 0, 0, 0, 0]];
  const grow = (depth: number, leaves: number) => {
    const parts = depth < 12 ? 1 : Math.min(leaves, 1 + Math.floor(random() * 4));
    let left = leaves;
    for (let part = 0; part < parts; part++) {
      const own = part + 1 === parts ? left : Math.max(1, Math.min(left - (parts - part - 1), Math.round((leaves / parts) * (0.4 + 1.2 * random()))));
      left -= own;
      const isLeaf = own === 1 && depth > 14;
      const time = isLeaf ? 1 + Math.floor(random() * 20) : 0;
      calls.push([depth, `function_${Math.floor(random() * 4000)}(THD*, bool)`, random() < 0.2 ? '[kernel]' : 'mariadbd', time, time, 2 * time, 0]);
      if (!isLeaf) grow(depth + 1, own);
    }
  };
  grow(1, stacks);
  return calls;
}

/** What a machine that is busy otherwise may take longer. */
const SLACK = 3;

test('100,000 stacks open within a second and zoom within a tenth of one', async () => {
  const calls = forest(100_000);
  expect(calls.filter((call) => call[3] > 0).length).toBeGreaterThanOrEqual(100_000);
  const changed = reportOf(calls);
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.locator('canvas').waitFor();
  const opened = await page.waitForFunction(() => performance.getEntriesByName('whyso-flame-open')[0]?.duration);
  const open_ms = (await opened.jsonValue()) as number;

  const times_ms: number[] = [];
  for (let round = 0; round < 4; round++) {
    const inward = await place(section, 16, 0.2 + 0.15 * round);
    const outward = await place(section, 0, 0.5);
    for (const at of [inward, outward]) {
      times_ms.push(
        await section.locator('canvas').evaluate(async (canvas, { x, y }) => {
          const drawn = canvas as HTMLCanvasElement;
          const box = drawn.getBoundingClientRect();
          const before = drawn.dataset['zoomed'];
          const began = performance.now();
          drawn.dispatchEvent(new MouseEvent('click', { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
          while (drawn.dataset['zoomed'] === before) await new Promise((resolve) => setTimeout(resolve));
          // Waits until the pixels are there.
          const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
          probe?.drawImage(drawn, 0, 0);
          probe?.getImageData(0, 0, 1, 1);
          return performance.now() - began;
        }, at),
      );
    }
  }
  const median_ms = times_ms.sort((a, b) => a - b)[times_ms.length >> 1] as number;
  console.log(`${calls.length} calls: opened in ${open_ms.toFixed(0)} ms, zoomed in ${median_ms.toFixed(0)} ms (median of ${times_ms.length}, worst ${times_ms.at(-1)?.toFixed(0)} ms)`);
  expect(open_ms).toBeLessThan(SLACK * 1000);
  expect(median_ms).toBeLessThan(SLACK * 100);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('functions stand in a table, and a click on one shows its callers and callees', async () => {
  const changed = reportOf(CALLS);
  const { page, complaints } = await open(browser, `${changed.url}#functions`);
  const section = graph(page);
  await section.getByRole('button', { name: /functions as a table/ }).click();
  const table = section.getByRole('group', { name: 'functions' });
  const row = (text: string) => table.locator('tbody tr').filter({ hasText: text }).locator('td').allTextContents();
  // Exclusive and inclusive time on CPUs, in locks, in files, and in others.
  await expect.poll(() => row('<Total>')).toEqual(['<Total>', '1 s', '1 s', '200 ms', '200 ms', '–', '–', '–', '–']);
  expect(await row('row_search')).toEqual(['row_search', '300 ms', '400 ms', '–', '–', '–', '–', '–', '–']);
  expect(await row('main')).toEqual(['main', '–', '600 ms', '–', '200 ms', '–', '–', '–', '–']);
  const order = () => table.locator('tbody tr td:first-child').allTextContents();
  expect((await order()).slice(0, 3)).toEqual(['<Total>', 'purge', 'row_search']);
  await table.getByRole('button', { name: 'inclusive' }).click();
  expect((await order()).slice(0, 3)).toEqual(['<Total>', 'main', 'do_command(THD*, bool)']);
  await table.getByRole('button', { name: 'row_search' }).click();
  // Attributed and inclusive.
  expect(await row('do_command')).toEqual(['do_command(THD*, bool)', '400 ms', '600 ms', '–', '200 ms', '–', '–', '–', '–']);
  expect(await row('memcpy')).toEqual(['memcpy', '100 ms', '100 ms', '–', '–', '–', '–', '–', '–']);
  await table.getByRole('button', { name: 'do_command' }).click();
  expect(await order()).toEqual(['main', 'do_command(THD*, bool) in itself, and inclusive', 'row_search', 'log_write_up_to']);
  await table.getByRole('button', { name: 'all functions' }).click();
  await section.getByLabel('find functions in the flame graph').fill('mem');
  expect(await order()).toEqual(['<Total>', 'memcpy']);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});
