#!/usr/bin/env node
/** The list of runs in a browser: from opening the page to its first rows, and from a word in the search to the rows that it finds. See README.md. */

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');

const ROUNDS = 5;
const WAIT_MS = 120_000;
/** Each finds some of the runs of `make_runs`; the last one finds all. */
const SEARCHES = ['db3', 'db3 note', 'run-00012', ''];

const [folder, ...programs] = process.argv.slice(2);
if (!folder || programs.length === 0) {
  console.error('give a folder of runs, and one or more programs');
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const servers = [];
try {
  for (const program of programs) servers.push(await serve(program));
  for (let round = 0; round < ROUNDS; round++) for (const server of servers) await measure(server);
  for (const { program, found } of servers) {
    console.log(program);
    for (const [what, values] of found) console.log(`  ${what}: median ${median(values)}, ${Math.min(...values)} to ${Math.max(...values)}`);
  }
} finally {
  await browser.close();
  for (const { child } of servers) child.kill();
}

async function serve(program) {
  const child = spawn(program, ['serve', '--runs', folder, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const address = await new Promise((done, failed) => {
    child.stdout.once('data', (data) => done(data.toString().trim().split(/\s/)[0]));
    child.once('exit', (code) => failed(new Error(`whyso serve ended with ${code}`)));
  });
  return { program, child, address, found: new Map() };
}

async function measure({ address, found }) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 } });
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length > 1, null, { timeout: WAIT_MS });
  // Since the navigation began: the page's clock starts there.
  enter(found, 'the page with its first rows: ms', await page.evaluate(painted));
  for (const text of SEARCHES) {
    const ms = await page.evaluate(async (text) => {
      const input = document.querySelector('input[type=search]');
      const begin = performance.now();
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - begin;
    }, text);
    enter(found, text === '' ? 'the search is cleared: ms' : `search for "${text}": ms`, ms);
  }
  await context.close();
}

/** The time once the next frame is painted. */
function painted() {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))));
}

function enter(found, what, value) {
  found.set(what, [...(found.get(what) ?? []), Math.round(value)]);
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
