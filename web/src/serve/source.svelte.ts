/** A run's data from the server: first the head, then the computed findings, and samples when charts need them. */

import type { Column, Head } from '../data/model.ts';
import { BlockSource, headOf, inflate, decodeBase64, type Lines, type LinesRequest } from '../data/source.ts';
import type { Span } from '../lib/desk.svelte.ts';
import { getBytes, getJson, getText, runPath } from './api.ts';
import { linesIn } from './columns.ts';

/** Buckets of a series that is read as a whole. */
const WHOLE_PIXELS = 2000;
/** Instances of a metric that are ranked for the top of them. */
const RANKED_MAX = 380;
/** Numbers of blocks of a window's tables begin here; those of the head and its parts are below. */
const WINDOW_BLOCKS = 2 ** 30;

/** In the order in which they are read. */
const PARTS = ['threads', 'timeline', 'stacks'] as const;

/** What a part adds to the head. */
type PartHead = Pick<Head, 'series' | 'threads' | 'timeline' | 'flame'>;
type Tables = Pick<Head, 'statements' | 'locks' | 'pfs'>;

export class ServedSource extends BlockSource {
  readonly id: string;
  override readonly isWhole = false;
  #head: Head = $state.raw({} as Head);
  #functions: Head['series'] = [];
  /** The tables by level, while those of a window are shown. */
  #byLevel: Tables | null = null;
  #windowBlocks: string[] = [];
  #windowFrom = WINDOW_BLOCKS;
  /** Grows whenever tables change. */
  tables: number = $state(0);
  isExplained: boolean = $state(false);
  /** Parts of what the server's threads did that are still to come. */
  coming: number = $state(PARTS.length);

  constructor(id: string, head: Head) {
    super();
    this.id = id;
    this.#head = head;
  }

  static async open(id: string): Promise<ServedSource> {
    return new ServedSource(id, headOf(await getText(runPath(id))));
  }

  get head(): Head {
    return this.#head;
  }

  /** Adds what was found. */
  async explain(): Promise<void> {
    const head = headOf(await getText(`${runPath(this.id)}/explained`));
    this.#head = head;
    this.isExplained = true;
    this.tables++;
  }

  /** Adds what the server's threads did, part by part: of a large recording each takes a while. */
  async addProfile(): Promise<void> {
    for (const part of PARTS) {
      const { series, ...more } = await getJson<PartHead>(`${runPath(this.id)}/profile/${part}`);
      this.#head = { ...this.#head, ...more };
      this.#functions = series.length > 0 ? series : this.#functions;
      this.#setSeries(this.#head.series);
      this.coming--;
    }
  }

  /** Series of functions come with the stacks. A head that was computed later has them, too. */
  #setSeries(series: Head['series']): void {
    const known = new Set(series.map((entry) => entry.slot));
    const more = this.#functions.filter((entry) => !known.has(entry.slot));
    this.#head = { ...this.#head, series: more.length > 0 ? [...series, ...more] : series };
  }

  /** Reads which series there are: a recording that has just begun gets them one source after the other. */
  async renewSeries(): Promise<void> {
    const { series, axes } = headOf(await getText(runPath(this.id)));
    if (series.length <= this.#head.series.length) return;
    this.#head = { ...this.#head, axes };
    this.#setSeries(series);
  }

  setEvents(events: Head['events']): void {
    this.#head = { ...this.#head, events };
  }

  /** Tables of a window in place of those by level; null brings these back. */
  async showTablesOf(window: Span | null, signal: AbortSignal): Promise<void> {
    if (window === null) {
      if (this.#byLevel) this.#head = { ...this.#head, ...this.#byLevel };
      if (this.#byLevel) this.tables++;
      this.#byLevel = null;
      return;
    }
    const path = `${runPath(this.id)}/tables?from_s=${window.from}&to_s=${window.to}`;
    const read = await getJson<{ tables: Tables; blocks: string[] }>(path, signal);
    const { statements, locks, pfs } = this.#head;
    this.#byLevel ??= { locks, ...(statements && { statements }), ...(pfs && { pfs }) };
    // Numbers of blocks are never reused: inflated blocks are cached by number.
    this.#windowFrom += this.#windowBlocks.length;
    this.#windowBlocks = read.blocks;
    const views = read.tables.pfs?.views.map((view) => ({ ...view, block: view.block + this.#windowFrom }));
    const tables = read.tables.pfs && views ? { ...read.tables, pfs: { ...read.tables.pfs, views } } : read.tables;
    this.#head = { ...this.#head, ...tables };
    this.tables++;
  }

  override async lines(series: number[], request: LinesRequest, signal?: AbortSignal): Promise<Lines> {
    const ranked = series.slice(0, RANKED_MAX);
    const bySlot = new Map(ranked.map((number) => [this.head.series[number]?.slot ?? -1, number]));
    const query = new URLSearchParams({
      numbers: [...bySlot.keys()].join(','),
      from_s: String(request.from),
      to_s: String(request.to),
      px: String(request.px),
      mode: request.mode,
      top: String(request.top),
      sum: String(request.sum),
    });
    const { lines, left } = linesIn(await getBytes(`${runPath(this.id)}/series?${query.toString()}`, signal));
    return {
      lines: lines.map(({ number, column }) => ({ series: number === null ? null : (bySlot.get(number) ?? null), column })),
      left: left + series.length - ranked.length,
    };
  }

  override async column(series: number): Promise<Column> {
    const to = (this.head.end_ns - this.head.origin_ns) / 1e9 + 60;
    const { lines } = await this.lines([series], { from: -60, to, px: WHOLE_PIXELS, mode: 'raw', top: 0, sum: false });
    return lines[0]?.column ?? { t: new Float64Array(), v: new Float64Array() };
  }

  protected async inflateBlock(number: number): Promise<Uint8Array> {
    if (number >= WINDOW_BLOCKS) {
      const block = this.#windowBlocks[number - this.#windowFrom];
      if (block === undefined) throw new Error('These tables were replaced by those of another window.');
      return inflate(decodeBase64(block));
    }
    return inflate(new Uint8Array(await getBytes(`${runPath(this.id)}/blocks/${number}`)));
  }
}
