// Prints when each of these reports was first painted, as headless Chromium saw it: node bench/report/first_paint.mjs REPORT.html…
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';

const ROUNDS = 5;
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

for (const report of process.argv.slice(2)) {
  const path = resolve(report);
  const painted = [];
  const drawn = [];
  for (let round = 0; round < ROUNDS; round++) {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await page.goto(pathToFileURL(path).href, { waitUntil: 'commit' });
    await page.waitForFunction(() => document.querySelectorAll('.chart .legend b').length > 0, null, { timeout: 60_000 });
    const [paint, charts] = await page.evaluate(() => [
      performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
      performance.now(),
    ]);
    painted.push(paint);
    drawn.push(charts);
    await browser.close();
  }
  const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const megabytes = readFileSync(path).length / 1e6;
  console.log(
    `${report}: ${megabytes.toFixed(2)} MB, first paint after ${middle(painted).toFixed(0)} ms, ` +
      `charts drawn after ${middle(drawn).toFixed(0)} ms (medians of ${ROUNDS})`,
  );
}
