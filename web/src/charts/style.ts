/** What all charts on a canvas share: their font, and a canvas as sharp as the screen. */

/** Height of a chart's letters, in CSS pixels. */
export const CHART_FONT_PX = 11;

let family: string | undefined;

/** The page's font in a chart's size. `ratio`: pixels of the canvas per CSS pixel. */
export function chartFont(ratio = 1): string {
  family ??= getComputedStyle(document.body).fontFamily;
  return `${CHART_FONT_PX * ratio}px ${family}`;
}

/** A canvas's context, and its size in pixels of the screen; null where it has no size. */
export interface SizedCanvas {
  context: CanvasRenderingContext2D;
  /** Pixels of the screen per CSS pixel. */
  ratio: number;
  wide: number;
  high: number;
}

/** Sets a canvas's pixels to those of the screen, for this size in CSS pixels. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number): SizedCanvas | null {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext('2d');
  return context && wide > 0 && high > 0 ? { context, ratio, wide, high } : null;
}
