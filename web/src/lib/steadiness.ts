/** How steady a level was, as text. Pure. */

import type { Steadiness } from '../data/model.ts';
import { rate, seconds } from './words.ts';

/** How a level was not steady; empty where nothing shows it. */
export function howUnsteady(steadiness: Steadiness): string {
  switch (steadiness.is) {
    case 'unstable_from':
      return `unstable from ${seconds(steadiness.s)}`;
    case 'trend': {
      const { from_per_s: from, to_per_s: to } = steadiness;
      return `throughput ${to > from ? 'climbed' : 'fell'} from ${rate(from)} to ${rate(to)}`;
    }
    case 'still_warming':
      return 'still warming up';
    default:
      return '';
  }
}
