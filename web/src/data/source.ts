import { Block } from './codec.ts';
import type { Column, Head, LinesHead, PfsLines, SourceTexts } from './model.ts';
import { Cumulative, inMode, summed, weight, type Mode } from '../lib/derive.ts';

/** A request for lines: these seconds of the run, for this many pixels. */
export interface LinesRequest {
  from: number;
  to: number;
  px: number;
  mode: Mode;
  /** The number of instances, the busiest first; 0: all. */
  top: number;
  /** One line, of the sum of all. */
  sum: boolean;
}

export interface Lines {
  /** By position in `head.series`; null: a sum. */
  lines: { series: number | null; column: Column }[];
  /** The number of less busy instances that are left out. */
  left: number;
}

/** The source of the page's data: the report's own file, or a server. */
export interface DataSource {
  readonly head: Head;
  /** Lines have all samples, whatever the window: they need no new request when the view moves. */
  readonly isWhole: boolean;
  /** The series at these positions in `head.series`, as a chart draws them. */
  lines(series: number[], request: LinesRequest, signal?: AbortSignal): Promise<Lines>;
  /** Samples of the series at this position in `head.series`. */
  column(series: number): Promise<Column>;
  /** The columns of the head's threads: one per state, then requests, connections, statements. */
  threadColumns(): Promise<Float64Array[]>;
  /** The columns of the head's timeline: which states each cell has, then of each state its milliseconds in those cells. */
  timelineColumns(): Promise<Float64Array[]>;
  /** The columns of its single waits and samples. */
  singleColumns(): Promise<Float64Array[]>;
  /** Depth and name of every node of the head's tree of calls. */
  flameTree(): Promise<[Float64Array, Float64Array]>;
  /** Exclusive microseconds of every node: a column of the level at this place in the head's flame. */
  flameColumn(place: number, column: number): Promise<Float64Array>;
  /** The samples: by whom their role, thread, connection and statement, then row by row metric, whom, stretch, node, time, spread and count. */
  sampleColumns(): Promise<Float64Array[]>;
  /** By call with its line: its node in the tree of calls. */
  lineNodes(): Promise<Float64Array>;
  /** Of each call with its line its depth and the place of its line; then of each line its function's name, its file and its number. */
  lineColumns(): Promise<[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]>;
  /** The text of the sources around lines that have time. */
  sourceTexts(): Promise<SourceTexts>;
  /** The lines of the Performance Schema's view at this place in the head's list. */
  pfsLines(place: number): Promise<PfsLines>;
}

const FORMAT = 1;

/** Parses a head. Throws if it has a format that this page cannot read. */
export function headOf(text: string): Head {
  const head = JSON.parse(text) as Head;
  if (head.format !== FORMAT) {
    throw new Error(`This page reads format ${FORMAT}, but the data have format ${head.format}.`);
  }
  return head;
}

/** Data in blocks, from any place. A block is inflated on first use. */
export abstract class BlockSource implements DataSource {
  abstract readonly head: Head;
  readonly isWhole: boolean = true;
  #blocks = new Map<number, Promise<Block>>();
  #transactions: Promise<Cumulative | null> | undefined;

  /** The inflated bytes of a block. */
  protected abstract inflateBlock(number: number): Promise<Uint8Array>;

  async lines(series: number[], { mode, top, sum }: LinesRequest): Promise<Lines> {
    const transactions = mode === 'per_transaction' ? await this.#endedTransactions() : null;
    const read = await Promise.all(
      series.map(async (number) => {
        const [column, kind] = [await this.column(number), this.head.series[number]?.kind ?? 'gauge'];
        return { series: number, weight: weight(column, kind), column: inMode(column, kind, mode, transactions) };
      }),
    );
    if (sum) return { lines: [{ series: null, column: summed(read.map((line) => line.column)) }], left: 0 };
    const shown = top > 0 && read.length > top ? read.sort((a, b) => b.weight - a.weight).slice(0, top) : read;
    return { lines: shown, left: read.length - shown.length };
  }

  /** Transactions that have ended by any moment; null where the load was not recorded. */
  #endedTransactions(): Promise<Cumulative | null> {
    const number = this.head.series.findIndex((entry) => entry.source === 'load' && entry.metric === 'per_s' && entry.instance === 'transaction');
    this.#transactions ??= number < 0 ? Promise.resolve(null) : this.column(number).then((column) => new Cumulative(column, 5));
    return this.#transactions;
  }

  async column(series: number): Promise<Column> {
    const about = this.head.series[series];
    const axis = about && this.head.axes[about.axis];
    if (!about || !axis) throw new Error(`There is no series ${series} in this report.`);
    const [axisBlock, block] = await Promise.all([this.#block(axis.block), this.#block(about.block)]);
    const micros = axisBlock.series(axis.slot);
    const t = micros.map((us) => us / 1e6);
    if (about.form === 'samples') return { t, v: block.series(about.slot) };
    const [min, q1, v, q3, max] = [0, 1, 2, 3, 4].map((stream) => block.series(about.slot + stream)) as [
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    return { t, v, band: { min, q1, q3, max } };
  }

  async threadColumns(): Promise<Float64Array[]> {
    const { threads } = this.head;
    if (!threads) throw new Error('This report has no threads.');
    const block = await this.#block(threads.block);
    const cells = threads.list.length * threads.t_ns.length;
    return Array.from({ length: threads.states.length + 3 }, (_, slot) => {
      const column = block.series(slot);
      if (column.length !== cells) throw new Error('The columns of the threads are shorter than the report says.');
      return column;
    });
  }

  async timelineColumns(): Promise<Float64Array[]> {
    const { timeline } = this.head;
    if (!timeline) throw new Error('This report has no threads over time.');
    const block = await this.#block(timeline.block);
    const cells = timeline.list.reduce((sum, line) => sum + line.buckets, 0);
    if (block.series(0).length !== cells || block.length !== timeline.states.length + 1) {
      throw new Error('The columns of the timeline are shorter than the report says.');
    }
    return block.all();
  }

  async singleColumns(): Promise<Float64Array[]> {
    const singles = this.head.timeline?.singles;
    if (!singles) throw new Error('This report has no single waits.');
    const block = await this.#block(singles.block);
    for (let slot = 1; slot <= 7; slot++) {
      if (block.series(slot).length !== singles.count) throw new Error('The columns of the single waits are shorter than the report says.');
    }
    return block.all();
  }

  async flameTree(): Promise<[Float64Array, Float64Array]> {
    const { flame } = this.head;
    if (!flame) throw new Error('This report has no stacks.');
    const block = await this.#block(flame.block);
    return [whole(block, 0, flame.nodes), whole(block, 1, flame.nodes)];
  }

  async flameColumn(place: number, column: number): Promise<Float64Array> {
    const { flame } = this.head;
    const level = flame?.levels[place];
    if (!flame || !level) throw new Error('This report has no stacks of this level.');
    const block = await this.#block(level.block);
    return whole(block, column, flame.nodes);
  }

  async sampleColumns(): Promise<Float64Array[]> {
    const samples = this.head.flame?.samples;
    if (!samples) throw new Error('This report has no samples by thread.');
    const block = await this.#block(samples.block);
    for (let slot = 4; slot < 11; slot++) {
      if (block.series(slot).length !== samples.rows) throw new Error('The columns of the samples are shorter than the report says.');
    }
    return block.all();
  }

  async lineNodes(): Promise<Float64Array> {
    const lines = this.#lines();
    return whole(await this.#block(lines.block), 2, lines.nodes);
  }

  async lineColumns(): Promise<[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]> {
    const lines = this.#lines();
    const block = await this.#block(lines.block);
    const [name, file, line] = [3, 4, 5].map((slot) => block.series(slot)) as [Float64Array, Float64Array, Float64Array];
    return [whole(block, 0, lines.nodes), whole(block, 1, lines.nodes), name, file, line];
  }

  async sourceTexts(): Promise<SourceTexts> {
    return (await this.#object(this.#lines().texts_block)) as SourceTexts;
  }

  async pfsLines(place: number): Promise<PfsLines> {
    const view = this.head.pfs?.views[place];
    if (!view) throw new Error('This report has nothing of this view of the Performance Schema.');
    return (await this.#object(view.block)) as PfsLines;
  }

  #lines(): LinesHead {
    const lines = this.head.flame?.lines;
    if (!lines) throw new Error('This report has no lines of sources.');
    return lines;
  }

  #block(number: number): Promise<Block> {
    let block = this.#blocks.get(number);
    if (!block) {
      block = this.inflateBlock(number).then((bytes) => new Block(bytes));
      this.#blocks.set(number, block);
    }
    return block;
  }

  /** A block that holds an object in place of columns. */
  async #object(number: number): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.inflateBlock(number)));
  }
}

/** The data that are inlined in this very page. */
export class InlinedSource extends BlockSource {
  readonly head: Head;

  constructor(head: Head) {
    super();
    this.head = head;
  }

  static open(): InlinedSource {
    const text = document.getElementById('whyso-head')?.textContent;
    if (!text) throw new Error('This page contains no run. Make a report with `whyso report RUN`.');
    return new InlinedSource(headOf(text));
  }

  protected async inflateBlock(number: number): Promise<Uint8Array> {
    await documentParsed();
    const element = document.getElementById(`whyso-block-${number}`);
    if (!element) throw new Error(`The block ${number} of samples is missing. Is the file complete?`);
    return inflate(decodeBase64((element.textContent ?? '').trim()));
  }
}

/** A column of the tree of calls. */
function whole(block: Block, slot: number, nodes: number): Float64Array {
  const column = block.series(slot);
  if (column.length !== nodes) throw new Error('The columns of the stacks are shorter than the report says.');
  return column;
}

export async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const inflating = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(inflating).arrayBuffer());
}

/** Newer browsers read base64 themselves, in a tenth of the time. */
export function decodeBase64(base64: string): Uint8Array<ArrayBuffer> {
  const own = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (own) return own.call(Uint8Array, base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** The script runs before the blocks after it are parsed, so that the page is drawn early. */
function documentParsed(): Promise<void> {
  if (document.readyState !== 'loading') return Promise.resolve();
  return new Promise((resolve) => document.addEventListener('DOMContentLoaded', () => resolve(), { once: true }));
}
