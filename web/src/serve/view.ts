/** The view of a run, as the address has it. Pure. */

import type { Chart, MetricPick, Span } from '../lib/chartspec.ts';
import type { Mode } from '../lib/derive.ts';

const MODES: Mode[] = ['rate', 'per_transaction', 'raw'];

type ChartTuple = [title: string, picks: [string, string, string, string | null][], mode: Mode, top: number, log: 0 | 1, sum: 0 | 1];

export function packCharts(charts: Chart[]): string {
  const packed = charts.map((chart): ChartTuple => [
    chart.title,
    chart.picks.map((pick) => [pick.host, pick.source, pick.metric, pick.instance]),
    chart.mode,
    chart.top,
    chart.log ? 1 : 0,
    chart.sum ? 1 : 0,
  ]);
  return JSON.stringify(packed);
}

/** What can't be read of it is left out; null where nothing is there. */
export function unpackCharts(text: string | null): Chart[] | null {
  if (text === null) return null;
  let packed: unknown;
  try {
    packed = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(packed)) return null;
  return packed.slice(0, 60).flatMap((entry: unknown): Chart[] => {
    if (!Array.isArray(entry)) return [];
    const [title, picks, mode, top, log, sum] = entry as unknown[];
    const read = (Array.isArray(picks) ? picks : []).flatMap((pick: unknown): MetricPick[] => {
      if (!Array.isArray(pick)) return [];
      const [host, source, metric, instance] = pick as unknown[];
      if (typeof host !== 'string' || typeof source !== 'string' || typeof metric !== 'string') return [];
      return [{ host, source, metric, instance: typeof instance === 'string' ? instance : null }];
    });
    if (read.length === 0) return [];
    return [
      {
        title: typeof title === 'string' ? title : (read[0]?.metric ?? ''),
        picks: read,
        mode: MODES.find((name) => name === mode) ?? 'rate',
        top: typeof top === 'number' && top >= 1 && top <= 100 ? Math.round(top) : 5,
        log: log === 1,
        sum: sum === 1,
      },
    ];
  });
}

/** Seconds with as many digits as a view needs. */
export function packSeconds(s: number): string {
  return String(Math.round(s * 1000) / 1000);
}

export function unpackSeconds(text: string | null): number | null {
  if (text === null || text.trim() === '') return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Returns the address of only these charts over a window: of a run, or of a comparison. */
export function runAddress(id: string, window: Span, charts: Chart[]): string {
  return `/runs/${encodeURIComponent(id)}?${shownQuery('', window, charts)}#explorer`;
}

export function compareAddress(search: string, window: Span, chart: Chart): string {
  return `/compare?${shownQuery(search, window, [chart])}`;
}

function shownQuery(search: string, { from, to }: Span, charts: Chart[]): string {
  const query = new URLSearchParams(search);
  query.set('from', packSeconds(from));
  query.set('to', packSeconds(to));
  query.set('charts', packCharts(charts));
  return query.toString();
}

/** Returns the window and the charts of an address, each null if absent. */
export function shownOf(query: URLSearchParams): { window: Span | null; charts: Chart[] | null } {
  const [from, to] = [unpackSeconds(query.get('from')), unpackSeconds(query.get('to'))];
  return { window: from !== null && to !== null && from < to ? { from, to } : null, charts: unpackCharts(query.get('charts')) };
}
