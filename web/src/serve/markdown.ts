/** A little Markdown as HTML: headings, paragraphs, lists, emphasis, code. Everything else is text. Pure. */

import { escapeHtml } from '../lib/exports.ts';

export function markdownHtml(text: string): string {
  const out: string[] = [];
  let paragraph: string[] = [];
  let list: string[] = [];
  const close = () => {
    if (paragraph.length > 0) out.push(`<p>${inline(paragraph.join(' '))}</p>`);
    if (list.length > 0) out.push(`<ul>${list.map((item) => `<li>${inline(item)}</li>`).join('')}</ul>`);
    [paragraph, list] = [[], []];
  };
  for (const line of text.split('\n')) {
    const heading = /^(#{1,3})\s+(.+)$/.exec(line);
    const item = /^\s*[-*]\s+(.+)$/.exec(line);
    if (heading) {
      close();
      const level = (heading[1] as string).length + 1;
      out.push(`<h${level}>${inline(heading[2] as string)}</h${level}>`);
    } else if (item) {
      if (paragraph.length > 0) close();
      list.push(item[1] as string);
    } else if (line.trim() === '') {
      close();
    } else {
      if (list.length > 0) close();
      paragraph.push(line.trim());
    }
  }
  close();
  return out.join('\n');
}

/** Converts code first: it contains no emphasis. */
function inline(text: string): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part) => {
      if (part.length > 2 && part.startsWith('`') && part.endsWith('`')) return `<code>${escapeHtml(part.slice(1, -1))}</code>`;
      return escapeHtml(part)
        .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
        .replace(/\*([^*]+)\*/g, '<em>$1</em>');
    })
    .join('');
}
