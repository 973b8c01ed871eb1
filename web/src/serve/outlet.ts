/** Where a chart of the served page can go in addition to a file. */

import type { Outlet } from '../lib/plot.ts';
import type { Span } from '../lib/desk.svelte.ts';
import { clock } from '../lib/words.ts';
import { draft } from './draft.svelte.ts';

/** `of`: the name of the run or runs; `address`: shows only this chart, over the window. */
export function outletOf(title: string, of: string, window: () => Span, address: () => string): Outlet {
  return {
    link: () => location.origin + address(),
    keep: (svg) => {
      const { from, to } = window();
      draft.addChart({ title, about: `${clock(Math.max(0, from))} to ${clock(to)} of ${of}`, svg, link: address() });
    },
  };
}
