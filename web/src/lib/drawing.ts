/** A chart that the page draws as SVG, as files that need no page. */

const HEAD = 30;
/** The properties of an element's style that a drawing needs. */
const STYLE_PROPERTIES = [
  'display', 'visibility', 'opacity', 'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin',
  'font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline',
] as const;

/** The drawing with its title, in the colours that the page has now. */
export function standaloneSvg(drawn: SVGSVGElement, title: string): string {
  const [width, height] = [drawn.clientWidth, drawn.clientHeight];
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[drawn, ...drawn.querySelectorAll('*')], [copy, ...copy.querySelectorAll('*')]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    const target = to[at] as SVGElement;
    for (const name of target.getAttributeNames()) if (/^(class|style|tabindex|role|aria-.*)$/.test(name)) target.removeAttribute(name);
    // As attributes: a policy without inline styles refuses them as a style.
    for (const name of STYLE_PROPERTIES) target.setAttribute(name, style.getPropertyValue(name));
  });
  const name = (text: string) => getComputedStyle(document.documentElement).getPropertyValue(text).trim();
  const whole = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  whole.setAttribute('width', String(width));
  whole.setAttribute('height', String(height + HEAD));
  whole.setAttribute('viewBox', `0 0 ${width} ${height + HEAD}`);
  const add = (tag: string, attributes: Record<string, string>, text = '') => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    whole.append(element);
  };
  add('rect', { width: '100%', height: '100%', fill: name('--paper') });
  add('text', { x: '12', y: '20', fill: name('--ink'), 'font-family': 'system-ui, sans-serif', 'font-size': '14', 'font-weight': '600' }, title);
  copy.setAttribute('y', String(HEAD));
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  whole.append(copy);
  return `${new XMLSerializer().serializeToString(whole)}\n`;
}

/** The same in pixels, as many as the screen has for it; null where the browser can't. */
export async function rasterise(svg: string): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width * devicePixelRatio, image.height * devicePixelRatio];
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
