import { describe, expect, it } from 'vitest';
import type { ListedRun } from '../../src/serve/api.ts';
import { linesIn } from '../../src/serve/columns.ts';
import { ANY, choicesOf, entryOfStudy, filterRuns, groupOf, groupRuns, searchRuns, lengthText, sortRuns, type ListedEntry, type RunFilter } from '../../src/serve/listing.ts';
import { markdownHtml } from '../../src/serve/markdown.ts';
import { packStretch, typedWindow, unpackSide, unpackStretch, windowText } from '../../src/serve/stretches.ts';
import { compareAddress, packCharts, runAddress, shownOf, unpackCharts, unpackSeconds } from '../../src/serve/view.ts';

const run = (id: string, more: Partial<ListedRun> = {}): ListedRun => ({
  id, workload: 'oltp', server: 'MariaDB 11', host: 'h', began_ms: 0, seconds: 1, levels: 1, best: null, name: '', tags: [], set: [], per_s: [], cause: null, verdict: null, notes: [], bytes: 1, live: false, ended: 'complete', ...more,
});

describe('the list of runs', () => {
  it('is filtered by cause, tag and server, and counts what there is to choose', () => {
    const cause = { id: 'row-lock', words: 'row locks on shop.stock', share: 0.7 };
    const runs = [run('a', { cause, tags: ['shop'] }), run('b', { cause, server: 'MySQL 9' }), run('c', { tags: ['shop', 'x'], set: ['innodb_io_capacity=9'] })];
    const ids = (filter: Partial<RunFilter>) => filterRuns(runs, { ...ANY, ...filter }).map((run) => run.id);
    expect(ids({})).toEqual(['a', 'b', 'c']);
    expect(ids({ cause: 'row-lock' })).toEqual(['a', 'b']);
    expect(ids({ tag: 'shop' })).toEqual(['a', 'c']);
    expect(ids({ cause: 'row-lock', server: 'MySQL 9' })).toEqual(['b']);
    expect(choicesOf(runs, (run) => run.tags)).toEqual([['shop', 2], ['x', 1]]);
    expect(searchRuns(runs, 'stock row-lock').map((run) => run.id)).toEqual(['a', 'b']);
    expect(searchRuns(runs, 'io_capacity=9').map((run) => run.id)).toEqual(['c']);
  });

  const runs = [run('a', { began_ms: 2, notes: ['RAID cache off'] }), run('b', { began_ms: 1, verdict: 'The redo log holds it' }), run('c', { began_ms: 3, server: 'MySQL 8' })];

  it('finds every word, anywhere', () => {
    expect(searchRuns(runs, 'raid OFF').map((one) => one.id)).toEqual(['a']);
    expect(searchRuns(runs, 'oltp redo').map((one) => one.id)).toEqual(['b']);
    expect(searchRuns(runs, ' ').length).toBe(3);
    expect(searchRuns(runs, 'redo raid')).toEqual([]);
  });

  it('sorts by any column, both ways', () => {
    expect(sortRuns(runs, { by: 'began', down: true }).map((one) => one.id)).toEqual(['c', 'a', 'b']);
    expect(sortRuns(runs, { by: 'server', down: false }).map((one) => one.id)).toEqual(['a', 'b', 'c']);
  });

  it('puts runs of the same workload and server together, the group with the first run first', () => {
    const mixed = [run('a'), run('b', { workload: 'tpcc' }), run('c'), run('d', { server: '' })];
    expect(groupRuns(mixed, () => 9).map((one) => one.id)).toEqual(['a', 'c', 'b', 'd']);
    expect(groupRuns(mixed, () => 1).map((one) => one.id)).toEqual(['a', 'b', 'd']);
    expect(mixed.map(groupOf)).toEqual(['oltp on MariaDB 11', 'tpcc on MariaDB 11', 'oltp on MariaDB 11', 'oltp']);
  });

  it('holds studies next to runs, and distinguishes them', () => {
    const study = entryOfStudy({ id: 'pfs', title: 'What it costs', question: 'Is it slower?', workload: 'oltp', servers: ['MariaDB 11', 'MySQL 9'], began_ms: 5, done: 2, starts: 12, verdict: 'It is slower.' });
    const both: ListedEntry[] = [...runs, study];
    expect(filterRuns(both, { ...ANY, kind: 'study' }).map((one) => one.id)).toEqual(['pfs']);
    expect(filterRuns(both, { ...ANY, kind: 'run' }).length).toBe(3);
    expect(searchRuns(both, 'slower mysql').map((one) => one.id)).toEqual(['pfs']);
    expect(sortRuns(both, { by: 'began', down: true })[0]?.study?.starts).toBe(12);
  });

  it('writes lengths as text', () => {
    expect([null, 42, 600, 7200].map(lengthText)).toEqual(['–', '42 s', '10 min', '2 h']);
  });
});

describe('the address', () => {
  const chart = { title: 'a "b"', picks: [{ host: 'server', source: 'status', metric: 'm&=', instance: null }, { host: 'h', source: 's', metric: 'n', instance: '' }], mode: 'raw' as const, top: 3, log: true, sum: false };

  it('brings charts back as they were', () => {
    expect(unpackCharts(packCharts([chart]))).toEqual([chart]);
  });

  it('of one chart says its window, and keeps what is compared', () => {
    const query = (address: string) => new URLSearchParams(new URL(address, 'http://x').search);
    const run = runAddress('a/b', { from: 1, to: 2.5 }, [chart]);
    expect(run).toMatch(/^\/runs\/a%2Fb\?.*#explorer$/);
    expect(shownOf(query(run))).toEqual({ window: { from: 1, to: 2.5 }, charts: [chart] });
    const compared = query(compareAddress('?first=a&second=b&charts=old', { from: 0, to: 9 }, chart));
    expect([compared.get('first'), compared.get('second'), shownOf(compared).charts?.length]).toEqual(['a', 'b', 1]);
    expect(shownOf(query('/runs/x?from=5&to=5')).window).toBeNull();
  });

  it('leaves out what makes no sense', () => {
    for (const text of ['', '{', '7', '[7,null,[]]', '[["t",[["h"]],"rate",5,0,0]]', '[["t",{},"rate"]]']) expect(unpackCharts(text) ?? []).toEqual([]);
    expect(unpackCharts(null)).toBeNull();
    expect(unpackCharts('[["t",[["h","s","m",1]],"sql",1e99,0,0]]')?.[0]).toMatchObject({ mode: 'rate', top: 5, picks: [{ instance: null }] });
    expect([null, '', 'x', '1.5'].map(unpackSeconds)).toEqual([null, null, null, 1.5]);
  });
});

it('reads columns as the server writes them', () => {
  const head = JSON.stringify({ lines: [{ number: 7, count: 2, band: false }, { number: null, count: 1, band: true }], left: 3 });
  const padded = head.padEnd(Math.ceil((4 + head.length) / 8) * 8 - 4);
  const numbers = [0, 1, 5, NaN, 9, 2, 1, 1.5, 2.5, 3];
  const buffer = new ArrayBuffer(4 + padded.length + numbers.length * 8);
  new DataView(buffer).setUint32(0, padded.length, true);
  new Uint8Array(buffer, 4).set(new TextEncoder().encode(padded));
  new Float64Array(buffer, 4 + padded.length).set(numbers);
  const { lines, left } = linesIn(buffer);
  expect([lines[0]?.number, lines[1]?.number, left]).toEqual([7, null, 3]);
  expect([...(lines[0]?.column.v ?? [])]).toEqual([5, NaN]);
  expect(lines[1]?.column.band?.max[0]).toBe(3);
});

it('writes Markdown as HTML, and nothing else as markup', () => {
  expect(markdownHtml('# A *b*\n\none\ntwo\n- x\n- `**y**`')).toBe('<h2>A <em>b</em></h2>\n<p>one two</p>\n<ul><li>x</li><li><code>**y**</code></li></ul>');
  expect(markdownHtml('<img src=x> **<b>** [a](javascript:x)')).toBe('<p>&lt;img src=x&gt; <strong>&lt;b&gt;</strong> [a](javascript:x)</p>');
});

describe('windows of runs', () => {
  it('are written into addresses and read from them', () => {
    for (const text of ['20260101-1@10.5-20', 'a@b', 'a@b@-3-4.2', 'plain']) expect(packStretch(unpackStretch(text))).toBe(text);
    expect(unpackStretch('a@1-2')).toEqual({ id: 'a', window: { from: 1, to: 2 } });
    expect(unpackStretch('a@2-1')).toEqual({ id: 'a@2-1', window: null });
    expect(unpackSide('a,b@1-2,').map((one) => one.id)).toEqual(['a', 'b']);
  });

  it('are read as they are typed', () => {
    expect(typedWindow('10:05–10:20')).toEqual({ from: 605, to: 620 });
    expect(typedWindow('1:00:00 - 3700.5')).toEqual({ from: 3600, to: 3700.5 });
    expect(typedWindow('5s..25s')).toEqual({ from: 5, to: 25 });
    expect(typedWindow(' ')).toBe(null);
    for (const wrong of ['5', '9-3', 'a-b', '1-2-3', '1:2:3:4-9']) expect(typedWindow(wrong)).toBe(undefined);
    expect(typedWindow(windowText({ from: 605, to: 700 }))).toEqual({ from: 605, to: 700 });
  });
});
