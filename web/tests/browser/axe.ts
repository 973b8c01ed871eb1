/** What axe-core finds on a page that is open. */

import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Findings that keep somebody from using the page, each with its first elements. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import('axe-core') };
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    const barriers = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    return barriers.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ''}`).join(' | ')} (${nodes.length})`);
  });
}
