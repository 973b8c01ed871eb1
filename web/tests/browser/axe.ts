/** What axe-core finds on a page that is open. */

import axe from 'axe-core';
import type { Page } from 'playwright-core';

const ALL_LOOKS = [['light', 1280], ['dark', 420]] as const;

/** How the pages are looked at: by WHYSO_PAGE=all, which make test-hard sets, also dark and on a narrow screen. */
export const LOOKS = process.env['WHYSO_PAGE'] === 'all' ? ALL_LOOKS : ALL_LOOKS.slice(0, 1);

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
