import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chooseTab, cssVariable, headOf, HOSTILE, launch, linePixels, open, reportHtml, reportUrl, variant, viewText } from './report.ts';

let browser: Browser;
const head = headOf(reportHtml);
const sweep = head.run.levels.filter((level) => level.purpose === 'sweep');

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

describe.each([
  [1280, 'light'],
  [1280, 'dark'],
  [2560, 'light'],
  [2560, 'dark'],
] as const)('%i pixels wide and %s', (width, scheme) => {
  test('every part is drawn, nothing overflows, nothing complains', async () => {
    const { page, complaints } = await open(browser, reportUrl, width, scheme);
    expect(await page.locator('svg .point').count()).toBeGreaterThanOrEqual(sweep.length);
    expect(await page.locator('#explorer .chart').count()).toBeGreaterThanOrEqual(2);
    for (const title of ['Throughput and latency against users', 'What was found', 'Levels', 'CPU use by level', 'Over time', 'Server settings']) {
      expect(await page.getByRole('heading', { name: title, exact: true, includeHidden: true }).count(), title).toBe(1);
    }
    const first = await cssVariable(page, '--c1');
    const charts = await page.locator('#explorer .chart').count();
    for (let chart = 0; chart < charts; chart++) {
      expect(await linePixels(page, chart, first), `chart ${chart}`).toBeGreaterThan(30);
    }
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    expect(paper).toBe(scheme === 'dark' ? 'rgb(20, 24, 28)' : 'rgb(253, 253, 252)');
    expect(complaints).toEqual([]);
    await page.close();
  });
});

test('the answer comes first: headline, three tiles, the time of a transaction, and a card for each cause', async () => {
  const changed = variant((head) => {
    head.answer.doubts = [`the level of 8 users was not steady ${HOSTILE}`];
    const [cause] = head.answer.causes;
    if (cause) Object.assign(cause, { words: `row locks on ${HOSTILE}`, held_by: HOSTILE, held_share: '87 % of 412 samples', remedy: 'shorten it', gain: '×1.3 to ×3' });
  });
  const { page, complaints } = await open(browser, changed.url, 1280, 'light');
  expect(await page.locator('h1').textContent()).toBe(`${head.answer.extent}: ${head.answer.rate}, p95 ${head.answer.p95}`);
  expect(await page.locator('.doubt').textContent()).toContain('✗ Not usable: the level of 8 users');
  expect(await page.locator('#tiles .tile').count()).toBe(3);
  expect(await page.locator('#tiles').textContent()).toContain('Not usable');
  const cards = page.locator('#causes .cause');
  expect(await cards.count()).toBe(head.answer.causes.length);
  expect(await cards.first().textContent()).toContain('×1.3 to ×3 (estimate)');
  expect(await cards.first().textContent()).toContain('87 % of 412 samples');
  // Its evidence is folded away, and leads to charts.
  const link = cards.first().locator('details .link').first();
  expect(await link.isVisible()).toBe(false);
  await cards.first().locator('summary').first().click();
  expect(await link.isVisible()).toBe(true);
  expect(await page.locator('#timebar .bar span').count()).toBeGreaterThan(1);
  // Whatever the unit, the parts fill the bar.
  const filled = await page.locator('#timebar .bar').evaluate((bar) => [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / bar.getBoundingClientRect().width);
  expect(filled).toBeGreaterThan(0.99);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('the time budget is drawn level by level, with its remainder, and says what a bar holds', async () => {
  const changed = variant((head) => {
    const series = { host: 'server', source: 'trace', metric: 'request_lock_ns', instance: '' };
    head.explanation.budgets = sweep.map((level, at) => ({
      level: level.index,
      users: level.users,
      repeat: false,
      response_ms: 1 + at * 4,
      parts: [
        { part: 'wakeup', ms: 0.4, series: [] },
        { part: 'lock', ms: 0.5 + at * 4, series: [series] },
      ],
      // Where the parts hold more than the response time, the remainder hangs from the axis.
      unaccounted_ms: at === 1 ? -0.3 : 0.1,
      classes: [],
      cpu_split: null,
      client_wakeup_ms: 0,
      remote: false,
      recorded: false,
      notes: ['A note.'],
    }));
  });
  const { page, complaints } = await open(browser, `${changed.url}#levels`);
  const budget = page.locator('#budget');
  const height = async (part: string) =>
    (await budget.locator(`rect[data-part="${part}"]`).evaluateAll((all) => all.map((one) => Number(one.getAttribute('height'))))).reduce((sum, one) => sum + one, 0);
  expect(await budget.locator('rect[data-part="lock"]').count()).toBe(sweep.length);
  expect(await budget.locator('rect[data-part="unaccounted"]').count()).toBe(sweep.length);
  expect(await height('lock')).toBeGreaterThan(50);
  expect(await height('unaccounted')).toBeGreaterThan(0.5);
  const before = await height('wakeup');
  await budget.getByRole('button', { name: 'share' }).click();
  await expect.poll(() => height('wakeup')).toBeGreaterThan(before);
  await budget.locator('rect[data-part="lock"]').last().hover();
  await expect.poll(() => budget.locator('li.whole').count()).toBe(1);
  expect(await budget.textContent()).toContain('A note.');
  // By keyboard: a part's name lights it in every bar, and leads to its series.
  await page.mouse.move(2, 2);
  await budget.getByRole('button', { name: 'waiting on locks' }).focus();
  await expect.poll(() => budget.locator('rect[data-part="wakeup"]').first().getAttribute('opacity')).toBe('0.25');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('.chart.focused h3').textContent()).toBe('request_lock_ns');
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('the nodes of a cluster stand in a table, with only the columns that some node has', async () => {
  const node = {
    role: 'replica', is_loaded: false, cpus: 0.5, statements_per_s: 2, behind_s: null, executed: null, paused: null,
    pauses_asked_per_s: null, receive_queue: null, conflicts_per_s: null, memory_used: null, page_hits: null, in_kernel: null, applier: null, applying: null, threads: [],
  };
  const changed = variant((head) => {
    head.explanation.nodes = [
      { ...node, name: 'db-1', role: 'source', is_loaded: true },
      {
        ...node, name: HOSTILE, behind_s: 14, executed: 0.61,
        applier: { name: 'SQL thread', threads: 1, busy: 0.91, states: [{ state: 'cpu', share: 0.61 }, { state: 'aio', share: 0.3 }] },
      },
    ];
  });
  const { page, complaints } = await open(browser, `${changed.url}#levels`);
  const nodes = page.getByRole('group', { name: 'nodes of the cluster' });
  const heads = await nodes.locator('thead th').allTextContents();
  expect(heads).toEqual(['node', 'role', 'CPUs', 'statements/s', 'behind, s', 'executed', 'busiest thread']);
  const cells = await nodes.locator('tbody tr').last().locator('th, td').allTextContents();
  expect(cells[0]).toBe(HOSTILE);
  expect(cells.at(-1)?.trim()).toBe('91 % of the time: 61 % work on a CPU, 30 % other waits; one of 1');
  expect(await nodes.locator('.bad').allTextContents()).toEqual(['14']);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a run that was not traced has no empty chart of its budget', async () => {
  const changed = variant((head) => {
    head.explanation.budgets = [];
  });
  const { page } = await open(browser, changed.url);
  expect(await page.locator('#budget').count()).toBe(0);
  await page.close();
  changed.remove();
});

test('dragging over one chart zooms all of them, a double click shows everything again', async () => {
  const { page } = await open(browser, reportUrl);
  const whole = await viewText(page);
  const shots = () => page.locator('.chart canvas').evaluateAll((all) => all.map((canvas) => (canvas as HTMLCanvasElement).toDataURL()));
  const before = await shots();
  const over = page.locator('.chart .u-over').first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box) throw new Error('the chart has no place');
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 6 });
  await page.mouse.up();
  await expect.poll(() => viewText(page)).not.toBe(whole);
  const after = await shots();
  expect(after.length).toBe(before.length);
  after.forEach((shot, chart) => expect(shot, `chart ${chart}`).not.toBe(before[chart]));
  await page.mouse.dblclick(box.x + box.width * 0.6, box.y + 60);
  await expect.poll(() => viewText(page)).toBe(whole);
  await page.close();
});

test('the cursor says exact values on every chart', async () => {
  const { page } = await open(browser, reportUrl);
  const over = page.locator('.chart .u-over').first();
  await over.scrollIntoViewIfNeeded();
  await over.hover({ position: { x: 300, y: 60 } });
  await expect.poll(() => page.locator('.chart .legend.at').count()).toBe(await page.locator('.chart .legend').count());
  expect(await page.locator('#explorer .cursor b').textContent()).toMatch(/^−?\d+:\d\d\.\d$/);
  await page.close();
});

test('a metric is found by typing and drawn only by keyboard', async () => {
  const counters = head.series.filter((entry) => entry.kind === 'counter' && !entry.flat && entry.instance === '');
  const counter = counters.find((counter) => counter.metric === 'Innodb_rows_read') ?? counters[0];
  if (!counter) throw new Error('the report has no series');
  const { page, complaints } = await open(browser, reportUrl);
  const charts = await page.locator('.chart').count();
  await page.locator('#metric-picker').focus();
  await page.keyboard.type(`${counter.source} ${counter.metric}`);
  expect(await page.locator('#metric-picker-list [role=option] .metric').first().textContent()).toBe(counter.metric);
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('.chart').count()).toBe(charts + 1);
  expect(await page.locator('.chart h3').first().textContent()).toBe(counter.metric);
  const color = await cssVariable(page, '--c1');
  await expect.poll(() => linePixels(page, 0, color)).toBeGreaterThan(30);

  const rate = await page.locator('.chart .legend b').first().textContent();
  await page.locator('.chart').first().getByRole('button', { name: 'raw' }).click();
  await expect.poll(() => page.locator('.chart .legend b').first().textContent()).not.toBe(rate);
  await page.locator('.chart').first().getByRole('button', { name: 'per transaction' }).click();
  await expect.poll(() => page.locator('.chart .legend b').first().textContent()).toContain('/transaction');
  expect(complaints).toEqual([]);
  await page.close();
});

test('a second metric joins a chart, and the chart can be closed', async () => {
  const { page } = await open(browser, reportUrl);
  const chart = page.locator('.chart').first();
  const lines = await chart.locator('.legend li').count();
  await chart.getByRole('combobox', { name: 'add a metric' }).fill('latency_mean_ms');
  await page.keyboard.press('Enter');
  await expect.poll(() => chart.locator('.legend li').count()).toBeGreaterThan(lines);
  const charts = await page.locator('.chart').count();
  await chart.getByRole('button', { name: /^remove the chart/ }).click();
  await expect.poll(() => page.locator('.chart').count()).toBe(charts - 1);
  await page.close();
});

test('evidence leads to the levels, the series and the setting of a sentence', async () => {
  const series = head.series.find((entry) => entry.kind === 'counter' && !entry.flat && entry.source !== 'load');
  const level = sweep.at(-1);
  if (!series || !level) throw new Error('the report has no counter or no level');
  const { host, source, metric, instance } = series;
  const changed = variant((head) => {
    head.explanation.findings = [{
      id: 'made',
      text: 'A sentence.',
      evidence: [
        { is: 'levels', quantity: 'transactions_per_s', levels: [level.index] },
        { is: 'series', series: { host, source, metric, instance }, ...level.window },
        { is: 'fact', path: 'server.variables.innodb_buffer_pool_size', value: '1' },
      ],
    }];
  });
  const { page, complaints } = await open(browser, `${changed.url}#findings`);
  const whole = await viewText(page);
  const evidence = page.locator('[aria-labelledby=findings-title] .evidence button');

  await evidence.nth(0).click();
  await expect.poll(() => viewText(page)).not.toBe(whole);
  expect(await page.locator('tr.chosen').count()).toBe(1);
  expect(await page.locator('.chart.focused h3').textContent()).toContain('Throughput');

  await chooseTab(page, 'Findings');
  await evidence.nth(1).click();
  await expect.poll(() => page.locator('.chart.focused h3').textContent()).toBe(metric);
  await expect.poll(() => page.locator('.chart.focused').evaluate((chart) => {
    const box = chart.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight;
  })).toBe(true);

  await chooseTab(page, 'Findings');
  await evidence.nth(2).click();
  await expect.poll(() => page.getByRole('searchbox', { name: 'search the settings' }).inputValue()).toBe('innodb_buffer_pool_size');
  expect(await page.locator('#settings .list tr').count()).toBeLessThan(5);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('only a level is shown by its row, and everything again by the same row', async () => {
  const { page } = await open(browser, `${reportUrl}#levels`);
  const whole = await viewText(page);
  const row = page.getByRole('button', { name: String(sweep[0]?.users), exact: true }).first();
  await row.press('Enter');
  await expect.poll(() => viewText(page)).not.toBe(whole);
  await row.press('Enter');
  await expect.poll(() => viewText(page)).toBe(whole);
  await page.close();
});

test('everything from a server is shown as text', async () => {
  const changed = variant((head) => {
    head.run.server.version = HOSTILE;
    head.run.server.variables[HOSTILE] = HOSTILE;
    head.run.not_measured.push({ source: 'other', what: HOSTILE, reason: '' });
    head.problems.push(HOSTILE);
    head.events.push({ t_ns: head.origin_ns + 1e9, host: HOSTILE, kind: HOSTILE, text: HOSTILE });
    head.explanation.findings.push({ id: HOSTILE, text: HOSTILE, evidence: [{ is: 'fact', path: HOSTILE, value: HOSTILE }] });
    for (const level of head.run.levels) {
      for (const statement of level.result.by_statement) statement.kind = `${HOSTILE}${statement.kind}`;
    }
    const series = head.series.find((entry) => entry.source !== 'load');
    if (series) series.metric = HOSTILE;
  });
  const { page, complaints } = await open(browser, changed.url);
  await page.locator('#metric-picker').fill('onerror');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('.chart h3').first().textContent()).toBe(HOSTILE);
  expect(await page.locator('.text', { hasText: HOSTILE }).count()).toBe(1);
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(await page.locator('img').count()).toBe(0);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('several kinds of transactions have a table of their own', async () => {
  const changed = variant((head) => {
    for (const level of head.run.levels) {
      const { latency_ms, service_ms, transactions, transactions_per_s } = level.result;
      const share = (part: number) => ({ transactions: transactions * part, transactions_per_s: transactions_per_s * part, latency_ms, service_ms, p90_ms: 3 });
      level.result.by_transaction = [
        { kind: 'new_order', ...share(0.75) },
        { kind: `pay ${HOSTILE}`, ...share(0.25) },
      ];
    }
  });
  const { page, complaints } = await open(browser, `${changed.url}#statements`);
  const table = page.locator('section', { has: page.getByRole('heading', { name: 'Transactions by kind' }) });
  await table.getByRole('button', { name: 'mix' }).click();
  expect(await table.locator('tbody tr').first().locator('td').allTextContents()).toEqual(['new_order', ...sweep.map(() => '75')]);
  expect(await table.locator('tbody tr').count()).toBe(2);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a sweep over rates is drawn and described against rates', async () => {
  const changed = variant((head) => {
    for (const [place, level] of head.run.levels.entries()) {
      level.users = 128;
      level.result.rate_per_s = 500 * 2 ** place;
      level.result.arrivals = { due: 1, due_per_s: 1, backlog_begin: 0, backlog_end: 0, backlog_max: 0, held: place === 0, late_ms: level.result.latency_ms };
    }
    head.explanation.peak = null;
    head.explanation.headline = 'The server kept up with 500/s, and not with 1,000/s.';
    head.answer = { ...head.answer, doubts: [], extent: 'The server kept up with 500/s, and not with 1,000/s', rate: '', p95: '' };
  });
  const { page, complaints } = await open(browser, changed.url);
  expect(await page.getByRole('heading', { name: 'Throughput and latency against the rate that is due' }).count()).toBe(1);
  // The explanation decides what leads; the page shows the same.
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('The server kept up with 500/s, and not with 1,000/s.');
  expect(await page.locator('svg text', { hasText: 'transactions due per second (open loop' }).count()).toBe(1);
  expect(await page.getByRole('button', { name: '500', exact: true }).count()).toBeGreaterThan(0);
  expect(await page.locator('td.regime', { hasText: 'behind' }).count()).toBeGreaterThan(0);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('a run without levels, findings and series is still a page', async () => {
  const changed = variant((head) => {
    head.run.levels = [];
    head.run.ended = { how: 'cut_short', at_ns: head.end_ns, why: 'the server died' };
    head.explanation = { levels: [], peak: null, usl: null, growth: [], drift: null, actions: [], budgets: [], about: null, limit: null, suspects: [], cpu_gains: { every_cpu: null, twice_the_speed: null }, headline: '', unusable: [], findings: [] };
    head.cpu_by_level = [];
    head.answer = { doubts: [], extent: 'No level of load was measured', rate: '', p95: '', limit: '', causes: [], requests: [], is_elsewhere: false };
  });
  const { page, complaints } = await open(browser, changed.url);
  expect(await page.getByText('cut short: the server died').count()).toBe(1);
  expect(await page.getByText('No level was measured.').count()).toBe(1);
  expect(complaints).toEqual([]);
  await page.close();
  changed.remove();
});

test('the theme can be switched by hand', async () => {
  const { page } = await open(browser, reportUrl, 1280, 'light');
  await page.getByRole('button', { name: 'dark', exact: true }).click();
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe('rgb(20, 24, 28)');
  const color = await cssVariable(page, '--c1');
  await expect.poll(() => linePixels(page, 0, color)).toBeGreaterThan(30);
  await page.close();
});
