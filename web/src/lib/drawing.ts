/** A chart that the page draws as SVG, as files that need no page. */

const SVG = 'http://www.w3.org/2000/svg';
const HEAD = 30;
const [LEGEND_LEFT, LEGEND_ROW, LEGEND_FONT] = [58, 20, 12];
/** Side of the square of a legend's colour. */
const SWATCH = 10;
/** Pixels of a picture for one of the drawing, at least: it may be printed. */
const SHARPNESS_MIN = 2;
/** The properties of an element's style that a drawing needs. */
const STYLE_PROPERTIES = [
  'display', 'visibility', 'opacity', 'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin',
  'font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline',
] as const;

/** Reads something of the page in its light colours: a picture is for paper, whatever the screen shows. */
export function inLight<T>(read: () => T): T {
  const { classList } = document.documentElement;
  const isDark = classList.contains('dark');
  classList.remove('dark');
  try {
    return read();
  } finally {
    classList.toggle('dark', isDark);
  }
}

/** The drawing with its title above and its legend below, in light colours. `legend`: what the page draws as its legend, an `li` for each entry. */
export function standaloneSvg(drawn: SVGSVGElement, title: string, legend: Iterable<HTMLElement> = []): string {
  return inLight(() => draw(drawn, title, [...legend]));
}

function draw(drawn: SVGSVGElement, title: string, legend: HTMLElement[]): string {
  const [width, height] = [drawn.clientWidth, drawn.clientHeight];
  const name = (text: string) => getComputedStyle(document.documentElement).getPropertyValue(text).trim();
  const whole = document.createElementNS(SVG, 'svg');
  const add = (tag: string, attributes: Record<string, string | number>, text = '') => {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.textContent = text;
    whole.append(element);
  };
  const place = (copy: SVGSVGElement, x: number, y: number, of: SVGSVGElement) => {
    for (const [key, value] of [['x', x], ['y', y], ['width', of.clientWidth], ['height', of.clientHeight]] as const) copy.setAttribute(key, String(value));
    whole.append(copy);
  };
  const font = { fill: name('--ink'), 'font-family': 'system-ui, sans-serif' };
  add('rect', { width: '100%', height: '100%', fill: name('--paper') });
  add('text', { x: 12, y: 20, ...font, 'font-size': 14, 'font-weight': 600 }, title);
  place(styledCopy(drawn), 0, HEAD, drawn);
  const measure = document.createElement('canvas').getContext('2d');
  if (measure) measure.font = `${LEGEND_FONT}px system-ui, sans-serif`;
  let [left, y] = [LEGEND_LEFT, HEAD + height + LEGEND_ROW];
  for (const entry of legend) {
    const text = (entry.textContent ?? '').replace(/\s+/g, ' ').trim();
    const swatch = entry.querySelector('svg');
    const wide = (swatch?.clientWidth ?? SWATCH) + 6;
    const size = wide + (measure?.measureText(text).width ?? text.length * 7) + 18;
    if (left > LEGEND_LEFT && left + size > width) [left, y] = [LEGEND_LEFT, y + LEGEND_ROW];
    if (swatch) place(styledCopy(swatch), left, y - swatch.clientHeight + 2, swatch);
    else {
      const color = entry.querySelector('i');
      const fill = color ? getComputedStyle(color).backgroundColor : 'none';
      add('rect', { x: left, y: y - SWATCH + 1, width: SWATCH, height: SWATCH, rx: 2, fill: fill === 'rgba(0, 0, 0, 0)' ? name('--muted') : fill });
    }
    add('text', { x: left + wide, y, ...font, 'font-size': LEGEND_FONT }, text);
    left += size;
  }
  const end = y + (legend.length > 0 ? 10 : -LEGEND_ROW);
  whole.setAttribute('width', String(width));
  whole.setAttribute('height', String(end));
  whole.setAttribute('viewBox', `0 0 ${width} ${end}`);
  return `${new XMLSerializer().serializeToString(whole)}\n`;
}

/** A copy that looks the same without the page. */
function styledCopy(drawn: SVGSVGElement): SVGSVGElement {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[drawn, ...drawn.querySelectorAll('*')], [copy, ...copy.querySelectorAll('*')]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    const target = to[at] as SVGElement;
    for (const name of target.getAttributeNames()) if (/^(class|style|tabindex|role|aria-.*)$/.test(name)) target.removeAttribute(name);
    // As attributes: a policy without inline styles refuses them as a style.
    for (const name of STYLE_PROPERTIES) target.setAttribute(name, style.getPropertyValue(name));
  });
  return copy;
}

/** The same in pixels; null where the browser can't. */
export async function rasterise(svg: string): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  const sharpness = Math.max(SHARPNESS_MIN, devicePixelRatio);
  [canvas.width, canvas.height] = [image.width * sharpness, image.height * sharpness];
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}

/** A table as CSV; what is no number stays empty. */
export function tableCsv(head: string[], rows: (number | string | null | undefined)[][]): string {
  const cell = (value: number | string | null | undefined) => {
    if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
    return value === null || value === undefined ? '' : quoteCsv(value);
  };
  return `${[head, ...rows.map((row) => row.map(cell))].map((row) => row.join(',')).join('\n')}\n`;
}

/** A name may hold anything; one that begins like a formula is no formula. */
export function quoteCsv(text: string): string {
  const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
