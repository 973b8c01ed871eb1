// Prints how long the timeline of these reports takes to open and to zoom, as headless Chromium saw it: node bench/report/timeline.mjs REPORT.html…
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';

const ROUNDS = 5;
const ZOOMS = 12;
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** What the page itself measured under a name, in milliseconds. */
const measured = (page, name) => page.evaluate((one) => performance.getEntriesByName(one, 'measure').map((entry) => entry.duration), name);

/** Zooms in and out step by step, at different places; returns the times from the wheel to the next frame. */
async function zoomed(page, timeline) {
  await page.evaluate(() => performance.clearMeasures('whyso-timeline-zoom'));
  for (let step = 0; step < ZOOMS; step++) {
    await timeline.evaluate((canvas, number) => {
      const box = canvas.getBoundingClientRect();
      const clientX = box.left + 168 + (box.width - 168) * (0.3 + 0.05 * (number % 6));
      canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: number < 6 ? -200 : 200, ctrlKey: true, clientX, clientY: box.top + 60, bubbles: true, cancelable: true }));
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }, step);
    // Longer than after which the rest of the page follows.
    await page.waitForTimeout(600);
  }
  return measured(page, 'whyso-timeline-zoom');
}

for (const report of process.argv.slice(2)) {
  const path = resolve(report);
  const [opened, cpu, shut, open] = [[], [], [], []];
  for (let round = 0; round < ROUNDS; round++) {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(pathToFileURL(path).href);
    const timeline = page.locator('#timeline canvas');
    await timeline.waitFor();
    await timeline.scrollIntoViewIfNeeded();
    await page.waitForFunction(() => performance.getEntriesByName('whyso-timeline-open').length > 0);
    opened.push(...(await measured(page, 'whyso-timeline-open')));
    const { metrics } = await session.send('Performance.getMetrics');
    cpu.push(1000 * (metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? NaN));
    await page.getByRole('button', { name: 'close all' }).click();
    shut.push(...(await zoomed(page, timeline)));
    await page.getByRole('button', { name: 'open all' }).click();
    await page.waitForTimeout(500);
    open.push(...(await zoomed(page, timeline)));
    await browser.close();
  }
  const megabytes = readFileSync(path).length / 1e6;
  const describe = (times) => `${middle(times).toFixed(0)} ms (at most ${Math.max(...times).toFixed(0)})`;
  console.log(
    `${report}: ${megabytes.toFixed(2)} MB, open after ${describe(opened)}, when the page's main thread had used ${describe(cpu)} of CPU; ` +
      `zoomed after ${describe(shut)} by role, after ${describe(open)} with all threads shown`,
  );
}
