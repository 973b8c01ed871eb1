/** A report that is being written: text and charts in order, stored in this browser until it is cleared. */

import { escapeHtml } from '../lib/exports.ts';
import { markdownHtml } from './markdown.ts';

export type Part =
  | { id: number; is: 'text'; text: string }
  | { id: number; is: 'chart'; title: string; about: string; svg: string; link: string };

const STORAGE_KEY = 'whyso-report';

interface StoredReport {
  title: string;
  parts: Part[];
}

class Draft {
  title: string = $state('');
  parts: Part[] = $state([]);
  failure: string = $state('');
  #nextId = 1;

  constructor() {
    this.#read();
    // Another tab may add a chart.
    addEventListener('storage', (event) => {
      if (event.key === STORAGE_KEY) this.#read();
    });
  }

  #read(): void {
    try {
      const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? 'null') as StoredReport | null;
      this.title = stored?.title ?? '';
      this.parts = stored?.parts ?? [];
      this.#nextId = Math.max(0, ...this.parts.map((part) => part.id)) + 1;
    } catch {
      this.parts = [];
    }
  }

  keep(): void {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify({ title: this.title, parts: this.parts }));
      this.failure = '';
    } catch {
      this.failure = "This report is too large for the browser's storage. Export it now, and remove some charts.";
    }
  }

  addText(at: number): void {
    this.parts.splice(at, 0, { id: this.#nextId++, is: 'text', text: '' });
    this.keep();
  }

  addChart(chart: { title: string; about: string; svg: string; link: string }): void {
    this.parts.push({ id: this.#nextId++, is: 'chart', ...chart });
    this.keep();
  }

  remove(id: number): void {
    this.parts = this.parts.filter((part) => part.id !== id);
    this.keep();
  }

  move(id: number, by: 1 | -1): void {
    const from = this.parts.findIndex((part) => part.id === id);
    const to = from + by;
    const [first, second] = [this.parts[from], this.parts[to]];
    if (!first || !second) return;
    [this.parts[from], this.parts[to]] = [second, first];
    this.keep();
  }

  clear(): void {
    [this.title, this.parts] = ['', []];
    this.keep();
  }
}

export const draft = new Draft();

/** One file that works offline; it holds the pictures and the text, and no script. */
export function htmlOf(title: string, parts: Part[]): string {
  const body = parts.map((part) =>
    part.is === 'text'
      ? `<section>${markdownHtml(part.text)}</section>`
      : `<figure>${part.svg}<figcaption>${escapeHtml(part.title)}: ${escapeHtml(part.about)}</figcaption></figure>`,
  );
  const name = escapeHtml(title || 'Report');
  return (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">' +
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` +
    `<meta name="generator" content="whyso"><title>${name}</title><style>` +
    'body{max-width:62rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:#1b2127;background:#fdfdfc}' +
    'figure{margin:1.5rem 0;break-inside:avoid}figure svg{max-width:100%;height:auto}figcaption{font-size:.85rem;color:#5d6873}code{background:#eef2f5;padding:0 .2em}' +
    `</style></head><body><h1>${name}</h1>\n${body.join('\n')}\n</body></html>\n`
  );
}
