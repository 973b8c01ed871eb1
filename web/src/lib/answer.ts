/** The answer of a run as the page shows it: headline, tiles, causes. The words come from the report; nothing is judged here. Pure. */

import type { AnswerCause, Budget, Head, Suspect } from '../data/model.ts';
import { isRecorded } from './runkind.ts';
import { atLeast, count, milliseconds, number, percentChange, users } from './words.ts';

export interface Tile {
  name: string;
  value: string;
  tone: 'good' | 'bad' | 'quiet';
  lines: string[];
}

/** "Stops at 8 users: 1,392 tps, p95 9 ms"; empty where no level was measured. */
export function resultOf({ answer }: Pick<Head, 'answer'>): string {
  if (answer.rate === '') return '';
  return `${answer.extent}: ${[answer.rate, answer.p95 === '' ? '' : `p95 ${answer.p95}`].filter((text) => text !== '').join(', ')}`;
}

/** The level that the answer is about: that of the peak, else the fastest. */
function toldLevel({ run, explanation }: Pick<Head, 'run' | 'explanation'>) {
  const swept = run.levels.filter((level) => level.purpose === 'sweep');
  const atPeak = swept.find((level) => level.users === explanation.peak?.users);
  const fastest = () => swept.reduce<(typeof swept)[number] | undefined>((best, level) => (best && best.result.transactions_per_s >= level.result.transactions_per_s ? best : level), undefined);
  return atPeak ?? fastest();
}

/** Throughput, response time, and how far to trust them; none where no level was measured. */
export function tilesOf(head: Head): Tile[] {
  const { answer, explanation, run } = head;
  const level = toldLevel(head);
  if (answer.rate === '' || !level) return [];
  const { latency_ms, errors } = level.result;
  const peak = explanation.peak;
  const verdict = explanation.levels.find((verdict) => verdict.index === level.index);
  const interval = verdict?.transactions_per_s_ci95;
  const swept = run.levels.filter((level) => level.purpose === 'sweep').length;
  const throughput: Tile = {
    name: isRecorded(run) ? 'Throughput' : swept > 1 ? 'Most throughput' : 'Throughput',
    value: answer.rate,
    tone: 'quiet',
    lines: [
      isRecorded(run) ? '' : `at ${users(level.users)}${peak && swept > 1 ? intervalWords(peak.users_interval, level.users) : ''}`,
      interval ? `${number(interval[0])} to ${number(interval[1])} within this start (95 %)` : '',
    ].filter((line) => line !== ''),
  };
  const tiles = [throughput];
  if (answer.p95 !== '') {
    const p99 = latency_ms.p99 > 0 ? `p99 ${atLeast(milliseconds(latency_ms.p99), isLowerBound(latency_ms, 99))}` : '';
    const mean = latency_ms.mean > 0 ? `mean ${milliseconds(latency_ms.mean)}` : '';
    tiles.push({ name: 'Response time, p95', value: answer.p95, tone: 'quiet', lines: [[mean, p99].filter((text) => text !== '').join(', '), errors > 0 ? count(errors, 'error') : ''].filter((line) => line !== '') });
  }
  const drift = explanation.drift;
  const doubts = answer.doubts;
  tiles.push({
    name: 'How far to trust it',
    value: doubts.length === 0 ? 'Usable' : 'Not usable',
    tone: doubts.length === 0 ? 'good' : 'bad',
    lines: [
      ...doubts,
      ...(drift && !doubts.some((doubt) => doubt.includes('drift')) ? [`the best level again at the end: ${percentChange(drift.ratio - 1)}`] : []),
      ...explanation.findings.filter((finding) => finding.id === 'watching').map((finding) => firstClause(finding.text)),
    ],
  });
  return tiles;
}

function isLowerBound(latency: { lower_bounds_above?: number | null }, percentile: number): boolean {
  const above = latency.lower_bounds_above;
  return above !== null && above !== undefined && percentile > above;
}

function intervalWords([low, high]: [number, number | null], at: number): string {
  if (high === null) return '; more may do more';
  return low === at && high === at ? '' : `; the peak lies within ${number(low)} to ${number(high)}`;
}

/** "Watching took 3.4 % of the CPU time that was used" of a longer sentence. */
function firstClause(text: string): string {
  return text.split(/[:,;]/)[0] ?? text;
}

/** The causes that the answer names, with all that is known of each. */
export function causesOf({ answer, explanation }: Pick<Head, 'answer' | 'explanation'>): { cause: AnswerCause; suspect: Suspect }[] {
  return answer.causes.flatMap((cause, place) => {
    const suspect = explanation.suspects[place];
    return suspect ? [{ cause, suspect }] : [];
  });
}

/** The time budget of the level that the cause is asked about. */
export function aboutBudget({ explanation }: Pick<Head, 'explanation'>): Budget | undefined {
  return explanation.budgets?.find((budget) => budget.level === explanation.about);
}
