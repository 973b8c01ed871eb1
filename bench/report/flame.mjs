// Prints how long the flame graphs of these reports take to open and to zoom, in alternating rounds, as headless Chromium saw it: node bench/report/flame.mjs REPORT.html…
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';

const ROUNDS = 9;
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const reports = process.argv.slice(2);
const opened = reports.map(() => []);
const cpu = reports.map(() => []);
for (let round = 0; round < ROUNDS; round++) {
  for (const [at, report] of reports.entries()) {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(pathToFileURL(resolve(report)).href);
    const measured = await page.waitForFunction(() => performance.getEntriesByName('whyso-flame-open')[0]?.duration);
    opened[at].push(await measured.jsonValue());
    const { metrics } = await session.send('Performance.getMetrics');
    cpu[at].push(1000 * (metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? NaN));
    await browser.close();
  }
}
for (const [at, report] of reports.entries()) {
  const describe = (times) => `${middle(times).toFixed(0)} ms (at most ${Math.max(...times).toFixed(0)})`;
  console.log(`${report}: open after ${describe(opened[at])}, when the page's main thread had used ${describe(cpu[at])} of CPU (medians of ${ROUNDS})`);
}
