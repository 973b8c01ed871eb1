/** Colours that stay apart for every common kind of colour blindness, as names of CSS variables (see app.css). */

import type { Regime } from '../data/model.ts';

export const LINE_COLORS = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--c8'] as const;

export const REGIME_COLOR: Record<Regime, string> = {
  ramping_up: '--ramping',
  peak: '--peak',
  degrading: '--degrading',
  unknown: '--unknown',
};

export const REGIME_NAME: Record<Regime, string> = {
  ramping_up: 'ramping up',
  peak: 'peak',
  degrading: 'degrading',
  unknown: 'not judged',
};

export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
