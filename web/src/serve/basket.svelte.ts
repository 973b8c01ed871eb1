/** The first side of a comparison, stored in this browser. So the second side can be chosen in another run or tab. */

import { packStretch, unpackStretch, type Stretch } from './stretches.ts';

const STORAGE_KEY = 'whyso-compare';

function readStored(): Stretch | null {
  try {
    const text = localStorage.getItem(STORAGE_KEY);
    return text === null ? null : unpackStretch(text);
  } catch {
    return null;
  }
}

class Basket {
  first: Stretch | null = $state.raw(readStored());

  constructor() {
    addEventListener('storage', (event) => {
      if (event.key === STORAGE_KEY) this.first = readStored();
    });
  }

  put(stretch: Stretch | null): void {
    this.first = stretch;
    try {
      if (stretch) localStorage.setItem(STORAGE_KEY, packStretch(stretch));
      else localStorage.removeItem(STORAGE_KEY);
    } catch {
      // Without storage, it stays in this tab.
    }
  }
}

export const basket = new Basket();
