/** What is to be compared with something that is still to be chosen. Kept in this browser, so that it can be chosen in another run or tab. */

import { packStretch, unpackStretch, type Stretch } from './stretches.ts';

const KEPT = 'whyso-compare';

function kept(): Stretch | null {
  try {
    const text = localStorage.getItem(KEPT);
    return text === null ? null : unpackStretch(text);
  } catch {
    return null;
  }
}

class Basket {
  first: Stretch | null = $state.raw(kept());

  constructor() {
    addEventListener('storage', (event) => {
      if (event.key === KEPT) this.first = kept();
    });
  }

  put(stretch: Stretch | null): void {
    this.first = stretch;
    try {
      if (stretch) localStorage.setItem(KEPT, packStretch(stretch));
      else localStorage.removeItem(KEPT);
    } catch {
      // A browser that keeps nothing keeps it in this tab.
    }
  }
}

export const basket = new Basket();
