/** The state of the page: the view, the chosen levels, and the charts of the explorer. One for the whole page. */

import { SvelteSet } from 'svelte/reactivity';
import type { DataSource } from '../data/source.ts';
import type { Evidence, Level, SeriesName, LevelVerdict } from '../data/model.ts';
import { EVERY_HOST, type Chart, type ChartSpec, type MetricPick, type Span } from './chartspec.ts';
import { defaultCharts, titleOf } from './chartsets.ts';
import type { Mode } from './derive.ts';
import { numbersIn, type Filter } from './filter.ts';
import { machinesOf, overHosts, type Machine } from './machines.ts';
import { samplesOf, type Samples } from './samples.ts';
import { FIRST_TAB, type TabId } from './tabs.ts';

export type { Chart, ChartSpec, MetricPick, Span } from './chartspec.ts';

/** The filter of threads, as the user types and ticks it. It applies to every view of threads. */
export class ThreadFilter {
  /** Empty: of any role. */
  role: string = $state('');
  name: string = $state('');
  /** Numbers between commas. */
  thread: string = $state('');
  connection: string = $state('');
  statement: string = $state('');
  /** Numbers of threads that are ticked in their table; empty: all. */
  readonly picked = new SvelteSet<number>();

  readonly conditions: Filter = $derived.by(() => {
    const typed = numbersIn(this.thread).numbers;
    // Both are conditions: of the ticked threads those that are typed, where both are there.
    const tids = typed.size === 0 ? new Set(this.picked) : this.picked.size === 0 ? typed : new Set([...typed].filter((tid) => this.picked.has(tid)));
    const isNone = tids.size === 0 && (typed.size > 0 || this.picked.size > 0);
    return {
      role: this.role,
      name: this.name.trim(),
      tids: isNone ? new Set([-1]) : tids,
      connections: numbersIn(this.connection).numbers,
      statement: this.statement.trim(),
    };
  });
  /** Without the ticked threads: these conditions choose the rows of the table of threads. */
  readonly typedConditions: Filter = $derived({ ...this.conditions, tids: numbersIn(this.thread).numbers });

  clear(): void {
    [this.role, this.name, this.thread, this.connection, this.statement] = ['', '', '', '', ''];
    this.picked.clear();
  }
}

/** The readings of different sources reach a recording at most this long after each other. */
const LATE_S = 5;

export class Desk {
  readonly source: DataSource;
  whole: Span;

  view: Span;
  /** Levels by index. */
  chosen: number[] = $state([]);
  /** The span that the view was fitted to: measured windows, or the evidence of a finding. Null once the user zoomed elsewhere. */
  #fitted: Span | null = $state(null);
  /** The window that is the evidence of a finding. */
  marked: Span | null = $state(null);
  charts: ChartSpec[] = $state([]);
  /** The chart to which a finding led last; it is drawn with a ring. */
  focused: number = $state(-1);
  /** What is shown below the answer. */
  tab: TabId = $state(FIRST_TAB);
  readonly threadFilter = new ThreadFilter();
  settingsFilter: string = $state('');
  dark: boolean = $state(false);
  /** Grows when a live run has new data in the view. */
  news: number = $state(0);
  /** The time of the last reading so far. */
  #end: number;
  #nextId = 0;
  #samples: Promise<Samples | null> | undefined;

  constructor(source: DataSource) {
    this.source = source;
    const { head } = source;
    const levels = head.run.levels;
    this.#end = this.seconds(head.end_ns);
    const begins = levels.map((level) => this.seconds(level.warmup.begin_ns || level.window.begin_ns));
    const ends = levels.map((level) => this.seconds(level.window.end_ns));
    const from = Math.min(0, ...begins);
    const to = ends.length > 0 ? Math.max(...ends) : this.seconds(head.end_ns);
    const margin = Math.max(1, (to - from) * 0.01);
    this.whole = $state({ from: from - margin, to: Math.max(to, from + 1) + margin });
    this.view = $state({ ...this.whole });
    this.openFirstCharts();
  }

  seconds(ns: number): number {
    return (ns - this.source.head.origin_ns) / 1e9;
  }

  level(index: number): Level | undefined {
    return this.source.head.run.levels.find((level) => level.index === index);
  }

  verdict(index: number): LevelVerdict | undefined {
    return this.source.head.explanation.levels.find((verdict) => verdict.index === index);
  }

  /** The part of the run that tables over a window are of. */
  get window(): Span {
    return this.#fitted ?? this.view;
  }

  /** What of the run is shown: all of it, a level, or some other window. */
  get part(): 'whole' | 'level' | 'window' {
    if (this.#fitted && this.chosen.length === 1 && !this.marked) return 'level';
    const isWhole = !this.#fitted && this.view.from <= this.whole.from + 0.01 && this.view.to >= this.whole.to - 0.01;
    return isWhole ? 'whole' : 'window';
  }

  showSpan(span: Span): void {
    this.#fitted = null;
    const from = Math.max(span.from, this.whole.from);
    const to = Math.min(span.to, this.whole.to);
    if (to - from > 0.01) this.view = { from, to };
  }

  /** Shows a window, and tables over a window are of exactly it. */
  choose(span: Span): void {
    const margin = (span.to - span.from) * 0.02;
    this.chosen = [];
    this.marked = null;
    this.showSpan({ from: span.from - margin, to: span.to + margin });
    this.#fitted = { from: Math.max(span.from, this.whole.from), to: Math.min(span.to, this.whole.to) };
  }

  /** Extends the run to this time. A view at its end stays at its end. */
  extend(to: number): void {
    if (to > this.#end && this.view.to >= this.#end - LATE_S) this.news++;
    this.#end = Math.max(to, this.#end);
    const grown = to - this.whole.to;
    if (grown <= 0) return;
    const isAtEnd = this.view.to >= this.whole.to - 0.01;
    const isWhole = isAtEnd && this.view.from <= this.whole.from + 0.01;
    this.whole = { from: this.whole.from, to };
    if (isWhole) this.view = { ...this.whole };
    else if (isAtEnd && !this.#fitted) this.view = { from: this.view.from + grown, to };
  }

  showAll(): void {
    this.view = { ...this.whole };
    this.#fitted = null;
    this.marked = null;
    this.chosen = [];
  }

  /** Shows only this level, or everything if this level is shown already. */
  toggleLevel(index: number): void {
    if (this.chosen.length === 1 && this.chosen[0] === index) {
      this.showAll();
      return;
    }
    this.chooseLevels([index]);
  }

  chooseLevels(indexes: number[]): void {
    const levels = indexes.flatMap((index) => this.level(index) ?? []);
    if (levels.length === 0) return;
    const from = Math.min(...levels.map((level) => this.seconds(level.warmup.begin_ns || level.window.begin_ns)));
    const measured = Math.min(...levels.map((level) => this.seconds(level.window.begin_ns)));
    const to = Math.max(...levels.map((level) => this.seconds(level.window.end_ns)));
    const margin = (to - from) * 0.04;
    this.chosen = indexes;
    this.marked = null;
    this.showSpan({ from: from - margin, to: to + margin });
    this.#fitted = { from: measured, to };
  }

  add(pick: MetricPick): number {
    const id = this.#nextId++;
    const drawn = pick.host === EVERY_HOST ? overHosts(this.source.head.series, pick) : { pick, sum: false };
    this.charts.unshift({ id, title: titleOf(pick, this.machines.length), picks: [drawn.pick], mode: 'rate', log: false, top: 5, sum: drawn.sum });
    return id;
  }

  /** The machines of the recording, the server's first. */
  get machines(): Machine[] {
    return machinesOf(this.source.head.run, this.source.head.series);
  }

  /** Those that a run opens with. */
  openFirstCharts(): void {
    this.setCharts(defaultCharts(this.source.head));
  }

  /** These charts, and no others. */
  setCharts(charts: Chart[]): void {
    this.charts = charts.map((chart) => ({ ...chart, id: this.#nextId++ }));
  }

  remove(id: number): void {
    this.charts = this.charts.filter((chart) => chart.id !== id);
  }

  /** Shows the evidence of a finding. */
  show(evidence: Evidence): void {
    if (evidence.is === 'fact') {
      const variable = /^server\.variables\.(.+)$/.exec(evidence.path)?.[1];
      if (variable !== undefined) this.settingsFilter = variable;
      this.tab = 'settings';
      scrollTo(evidence.path === 'not_measured' ? 'not-measured' : 'settings');
      return;
    }
    if (evidence.is === 'levels') {
      this.chooseLevels(evidence.levels);
      this.#focus(this.#chartOf(evidence.quantity));
      return;
    }
    const span = { from: this.seconds(evidence.begin_ns), to: this.seconds(evidence.end_ns) };
    const margin = Math.max(1, (span.to - span.from) * 0.35);
    this.chosen = [];
    this.showSpan({ from: span.from - margin, to: span.to + margin });
    this.#fitted = span;
    this.marked = span;
    this.#focus(this.#chartWith(evidence.series));
  }

  showSeries(series: SeriesName, mode: Mode): void {
    const id = this.#chartWith(series);
    const chart = this.charts.find((chart) => chart.id === id);
    if (chart) chart.mode = mode;
    this.#focus(id);
  }

  /** Samples of stacks by thread and time; null where there are none. */
  samples(): Promise<Samples | null> {
    const head = this.source.head.flame?.samples;
    const nodes = head?.lines ? this.source.lineNodes() : Promise.resolve(null);
    this.#samples ??= head ? Promise.all([this.source.sampleColumns(), nodes]).then(([columns, nodeOf]) => samplesOf(head, columns, nodeOf)) : Promise.resolve(null);
    return this.#samples;
  }

  #chartOf(quantity: string): number {
    const word = quantity.toLowerCase();
    const title = word.includes('latency') || word.includes('ms') || word.includes('service') ? 'Latency'
      : word.includes('cpu') || word.includes('idle') ? 'CPU' : 'Throughput';
    const chart = this.charts.find((chart) => chart.title.startsWith(title)) ?? this.charts[0];
    return chart?.id ?? -1;
  }

  #chartWith(series: SeriesName): number {
    const has = (chart: ChartSpec) =>
      chart.picks.length === 1 &&
      chart.picks.some((pick) => pick.source === series.source && pick.metric === series.metric && pick.host === series.host);
    const found = this.charts.find(has);
    if (found) return found.id;
    const instance = series.instance === '' ? null : series.instance;
    return this.add({ host: series.host, source: series.source, metric: series.metric, instance });
  }

  /** Shows these charts, and no others. */
  openCharts(charts: Chart[]): void {
    this.setCharts(charts);
    this.focused = -1;
    this.tab = 'time';
    scrollTo(`chart-${this.charts[0]?.id ?? -1}`);
  }

  #focus(id: number): void {
    this.focused = id;
    this.tab = 'time';
    scrollTo(`chart-${id}`);
  }
}

function scrollTo(id: string): void {
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  // A chart that was just added is in the page after the next frame.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const element = document.getElementById(id);
      element?.scrollIntoView({ behavior: calm ? 'instant' : 'smooth', block: 'center' });
      if (element) stayAt(element);
    }),
  );
}

/** Parts of the page that follow its window may grow or shrink a moment later, and move what was scrolled to. */
const SETTLES_MS = 1500;

function stayAt(element: HTMLElement): void {
  let height = document.documentElement.scrollHeight;
  const observer = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight === height) return;
    height = document.documentElement.scrollHeight;
    element.scrollIntoView({ behavior: 'instant', block: 'center' });
  });
  observer.observe(document.body);
  setTimeout(() => observer.disconnect(), SETTLES_MS);
}
