#!/usr/bin/env node
/** Script time of the page of `whyso serve`: a frame while the pointer moves and drags, and a full redraw; and what ten open pages of a live run cost. See README.md. */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');

const CHARTS = 10;
const SERIES_A_CHART = 20;
const MOVES = 400;
/** A mouse tells of itself so often. */
const MOVE_EVERY_MS = 4;
const REDRAWS = 10;
/** After a change, nothing is left to do once so long. */
const QUIET_MS = 1500;
const PAGES = 10;
const MINUTE_MS = Number(process.env.BENCH_SECONDS ?? 60) * 1000;
const WAIT_MS = 60_000;

/** What of the trace is script: its outermost stretches are added up. */
const SCRIPT = new Set(['FunctionCall', 'v8.callFunction', 'EvaluateScript', 'EventDispatch', 'FireAnimationFrame', 'TimerFire', 'BlinkScheduler_PerformMicrotaskCheckpoint', 'MinorGC', 'MajorGC', 'IntersectionObserverController::computeIntersections']);

const [program, folder, servers] = process.argv.slice(2);
if (!program || !folder) {
  console.error('give the program and a folder of recordings; and a file of servers to measure a live run of its first one');
  process.exit(2);
}

const served = spawn(program, ['serve', '--runs', folder, '--listen', '127.0.0.1:0', ...(servers ? ['--servers', servers] : [])], { stdio: ['ignore', 'pipe', 'inherit'] });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const address = await new Promise((done, failed) => {
    served.stdout.once('data', (data) => done(data.toString().trim().split(/\s/)[0]));
    served.once('exit', (code) => failed(new Error(`whyso serve ended with ${code}`)));
  });
  const context = await browser.newContext({ viewport: { width: 1920, height: 1080 } });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  await page.goto(address);
  await page.locator('main h1').waitFor();
  if (servers) await measureLive(context, page, new URL(address).origin);
  else await measureDrag(page, new URL(address).origin);
} finally {
  await browser.close();
  served.kill();
}

/** Charts of series that are drawn at random, as an address says them. */
function chartsOf(series) {
  let state = 7;
  const dice = (below) => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % below;
  const chart = (_, number) => [
    `chart ${number + 1}`,
    Array.from({ length: SERIES_A_CHART }, () => series[dice(series.length)]).map((one) => [one.host, one.source, one.metric, one.instance]),
    'rate', 5, 0, 0,
  ];
  return JSON.stringify(Array.from({ length: CHARTS }, chart));
}

async function measureDrag(page, origin) {
  const { id, series } = await page.evaluate(async () => {
    const { runs } = await (await fetch('/api/v1/runs')).json();
    const [{ id }] = runs;
    return { id, series: (await (await fetch(`/api/v1/runs/${encodeURIComponent(id)}`)).json()).series };
  });
  const from = 0;
  const query = new URLSearchParams({ from: String(from), to: String(from + 3600), charts: chartsOf(series) });
  // All ten are in sight.
  await page.setViewportSize({ width: 1920, height: 2800 });
  await page.goto(`${origin}/runs/${encodeURIComponent(id)}?${query}#explorer`);
  await page.waitForFunction((count) => [...document.querySelectorAll('.chart')].filter((chart) => chart.querySelector('.legend b') && chart.getAttribute('aria-busy') === 'false').length === count, CHARTS);
  await page.waitForTimeout(QUIET_MS);
  const box = await page.locator('.chart .u-over').first().boundingBox();
  const input = await page.context().newCDPSession(page);
  const mouse = (type, x, buttons) => input.send('Input.dispatchMouseEvent', { type, x, y: box.y + 60, button: buttons ? 'left' : 'none', buttons, clickCount: type === 'mouseMoved' ? 0 : 1 });
  const moves = async (buttons) => {
    const sent = [];
    for (let step = 0; step < MOVES; step++) {
      sent.push(mouse('mouseMoved', box.x + box.width * (0.1 + (0.8 * step) / MOVES), buttons));
      await new Promise((done) => setTimeout(done, MOVE_EVERY_MS));
    }
    await Promise.all(sent);
  };

  const hovering = await traced(page, () => moves(0));
  tellFrames('a frame while the pointer moves', hovering);
  const shotsBefore = await canvases(page);
  await mouse('mouseMoved', box.x + box.width * 0.1, 0);
  await mouse('mousePressed', box.x + box.width * 0.1, 1);
  const dragging = await traced(page, () => moves(1));
  tellFrames('a frame while a selection is dragged', dragging);
  const redrawn = (await canvases(page)).filter((shot, chart) => shot !== shotsBefore[chart]).length;
  console.log(`charts drawn again while dragging: ${redrawn}, wanted: 0`);

  const [whole, fresh] = [[], []];
  const released = await traced(page, async () => {
    await mouse('mouseReleased', box.x + box.width * 0.9, 0);
    await page.waitForTimeout(QUIET_MS);
  });
  whole.push(total(released.script));
  fresh.push(total(released.script, released.firstData));
  await page.locator('.plot').first().focus();
  for (let round = 0; round < REDRAWS; round++) {
    const seen = await traced(page, async () => {
      await page.keyboard.press(round % 2 === 0 ? '-' : '+');
      await page.waitForTimeout(QUIET_MS);
    });
    whole.push(total(seen.script));
    fresh.push(total(seen.script, seen.firstData));
  }
  tell(`script of a full redraw of ${CHARTS} charts of ${SERIES_A_CHART} series, from the first new data on`, fresh, 150);
  tell('the same with what the change of the window itself takes', whole);
}

function canvases(page) {
  return page.locator('.chart canvas').evaluateAll((all) => all.map((canvas) => canvas.toDataURL()));
}

/** Script of the page's main thread, microseconds, while something is done. */
async function traced(page, what) {
  await browser.startTracing(page, { categories: ['devtools.timeline', 'devtools.timeline.frame', 'v8', 'toplevel', 'blink', '__metadata'] });
  await what();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const threads = new Map();
  for (const event of traceEvents) {
    if (!SCRIPT.has(event.name) || event.ph !== 'X') continue;
    const key = `${event.pid} ${event.tid}`;
    threads.set(key, [...(threads.get(key) ?? []), event]);
  }
  // The page is what runs the most script.
  const sum = (events) => events.reduce((all, event) => all + (event.dur ?? 0), 0);
  const [key, events] = [...threads].sort((a, b) => sum(b[1]) - sum(a[1]))[0] ?? ['', []];
  const script = [];
  for (const event of events.sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0))) {
    const last = script.at(-1);
    if (last && event.ts < last.end) continue;
    script.push({ begin: event.ts, end: event.ts + (event.dur ?? 0) });
  }
  const own = traceEvents.filter((event) => `${event.pid} ${event.tid}` === key);
  const frames = own.filter((event) => event.name === 'AnimationFrame' && event.ph === 'b').map((event) => event.ts).sort((a, b) => a - b);
  const asked = new Set(own.filter((event) => event.name === 'ResourceSendRequest' && /\/series\?/.test(event.args?.data?.url ?? '')).map((event) => event.args.data.requestId));
  const finished = traceEvents.filter((event) => event.name === 'ResourceFinish' && asked.has(event.args?.data?.requestId)).map((event) => event.ts);
  return { script, frames, firstData: Math.min(Infinity, ...finished) };
}

/** Milliseconds of script, of what began at a moment or later. */
function total(script, from = -Infinity) {
  return script.filter((one) => one.begin >= from).reduce((all, one) => all + one.end - one.begin, 0) / 1000;
}

function tellFrames(what, { script, frames }) {
  const times = [];
  for (const [at, begin] of frames.entries()) {
    const end = frames[at + 1] ?? Infinity;
    const ms = script.filter((one) => one.begin >= begin && one.begin < end).reduce((all, one) => all + one.end - one.begin, 0) / 1000;
    if (ms > 0) times.push(ms);
  }
  tell(`script of ${what}, ${times.length} frames`, times, 8);
}

function tell(what, values, wanted, unit = 'ms', judged = 'median') {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
  const [median, most] = [at(0.5), at(1)];
  const bound = wanted === undefined ? '' : `, wanted at most ${wanted}: ${((judged === 'median' ? median : most) / wanted).toFixed(2)}`;
  console.log(`${what}: median ${median.toFixed(2)} ${unit}, 95 % ${at(0.95).toFixed(2)} ${unit}, worst ${most.toFixed(2)} ${unit}${bound}`);
}

/** In the page: when each new reading of a chart was on it, against when it was taken. */
function watchLag() {
  const lags = (window.lags = []);
  const newest = new Map();
  const fetched = window.fetch;
  let wallOf = null;
  window.fetch = async (...asked) => {
    const answer = await fetched(...asked);
    const url = String(asked[0]);
    if (/\/runs\/[^/?]+$/.test(url)) {
      const { run, origin_ns } = await answer.clone().json();
      const anchor = run.anchors.at(-1);
      wallOf = (t) => (anchor.wall_ns + (origin_ns + t * 1e9 - anchor.monotonic_ns)) / 1e6;
    }
    if (!url.includes('/series?') || !wallOf) return answer;
    const body = await answer.clone().arrayBuffer();
    const drawn = () => {
      const now = Date.now();
      const length = new DataView(body).getUint32(0, true);
      const { lines } = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, length)));
      let at = 4 + length;
      for (const { number, count, band } of lines) {
        const t = new Float64Array(body, at, count);
        at += count * 8 * (band ? 6 : 2);
        const before = newest.get(number);
        for (const one of t) if (before !== undefined && one > before) lags.push(now - wallOf(one));
        if (count > 0) newest.set(number, Math.max(before ?? -Infinity, t[count - 1]));
      }
    };
    // The chart is drawn in the frame after the one that its lines come in.
    requestAnimationFrame(() => requestAnimationFrame(drawn));
    return answer;
  };
}

/** Seconds of CPU that a process has used. */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function shareOfCpu() {
  const [begin, cpu] = [performance.now(), cpuOf(served.pid)];
  await new Promise((done) => setTimeout(done, MINUTE_MS));
  return ((cpuOf(served.pid) - cpu) / (performance.now() - begin)) * 1e5;
}

async function measureLive(context, page, origin) {
  await page.getByRole('button', { name: 'record', exact: true }).first().click();
  const watch = page.getByRole('link', { name: 'watch it' }).first();
  await watch.waitFor();
  const address = origin + (await watch.getAttribute('href'));
  await page.goto('about:blank');
  // Its first seconds: every series is new.
  await page.waitForTimeout(10_000);
  const alone = await shareOfCpu();
  const pages = [];
  const open = async () => {
    const one = await context.newPage();
    await one.addInitScript(watchLag);
    await one.goto(`${address}#explorer`);
    await one.locator('.window .live').waitFor();
    await one.locator('.chart .legend b').first().waitFor();
    pages.push(one);
  };
  const watched = async () => {
    await page.waitForTimeout(5000);
    await Promise.all(pages.map((one) => one.evaluate(() => (window.lags.length = 0))));
    const share = await shareOfCpu();
    const lags = (await Promise.all(pages.map((one) => one.evaluate(() => window.lags)))).flat();
    tell(`${pages.length} open ${pages.length === 1 ? 'page' : 'pages'}: from a reading being taken to its being drawn, ${lags.length} readings`, lags.map((ms) => ms / 1000), 1.5, 's', 'worst');
    return share;
  };
  await open();
  await watched();
  while (pages.length < PAGES) await open();
  const share = await watched();
  console.log(`CPU of whyso serve while it records: ${alone.toFixed(1)} % of a core; with ${PAGES} open pages: ${share.toFixed(1)} %`);
  console.log(`${PAGES} open pages: ${(share - alone).toFixed(1)} % of a core, wanted less than 5: ${((share - alone) / 5).toFixed(2)}`);
  await page.goto(origin);
  await page.getByRole('button', { name: 'stop', exact: true }).first().click();
  await page.getByRole('button', { name: 'record', exact: true }).first().waitFor();
}
