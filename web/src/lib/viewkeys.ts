/** Keys that move and zoom the view of every chart over time. */

import type { Desk } from './desk.svelte.ts';

/** Arrow keys move the view, plus and minus zoom it, 0 and Escape show all. */
export function viewKeys(desk: Pick<Desk, 'view' | 'showSpan' | 'showAll'>, event: KeyboardEvent): void {
  const span = desk.view.to - desk.view.from;
  const step = span * 0.2;
  const moves: Record<string, [number, number]> = {
    ArrowLeft: [-step, -step],
    ArrowRight: [step, step],
    '+': [step, -step],
    '-': [-step, step],
  };
  const move = moves[event.key];
  if (event.key === 'Escape' || event.key === '0') desk.showAll();
  else if (move) desk.showSpan({ from: desk.view.from + move[0], to: desk.view.to + move[1] });
  else return;
  event.preventDefault();
}
