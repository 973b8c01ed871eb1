/** What the headline says: made of what was found, never judged anew. Pure. */

import type { Head, RunInfo, Verdict } from '../data/model.ts';
import { axisOf } from './axis.ts';
import { num, users } from './format.ts';
import { isRecorded, processOf, unitOfRun } from './recorded.ts';

export interface Badge {
  text: string;
  tone: 'good' | 'bad' | 'quiet';
  why: string;
}

/** The workload, as far as the spec or the command line names it. */
export function workloadOf(run: RunInfo): string {
  const { spec } = run;
  if (spec !== null && typeof spec === 'object' && 'workload' in spec) {
    const workload = (spec as { workload: unknown }).workload;
    if (typeof workload === 'string') return workload;
    if (workload !== null && typeof workload === 'object' && 'name' in workload && typeof workload.name === 'string') return workload.name;
  }
  return run.command[2] ?? run.id;
}

/** How the machine is made: "a kvm virtual machine"; nothing for bare metal. A guess may be a whole phrase already. */
export function machineKind(virtualization: string): string {
  if (virtualization === '' || virtualization === 'none') return '';
  return virtualization.includes('virtual machine') ? virtualization : `a ${virtualization} virtual machine`;
}

export function verdictOf({ run, explanation }: Pick<Head, 'run' | 'explanation'>): string {
  const unit = unitOfRun(run);
  const { peak } = explanation;
  const [only, ...others] = explanation.levels;
  const name = processOf(run);
  if (name !== null) return `Where the time of ${name} went.`;
  if (!only) return run.ended === null ? 'This recording goes on.' : 'No level of load was measured.';
  if (axisOf(run).head === 'due/s') return ratesVerdict(run);
  if (others.every((level) => level.users === only.users)) {
    return `${loadersOf(run, only)}: ${num(only.transactions_per_s)} ${unit}s a second.`;
  }
  if (!peak) return 'No peak can be named: see the findings.';
  const [low, high] = peak.users_interval;
  const where = low === high ? `at ${users(peak.users)}` : `at ${low} to ${users(high)}`;
  return `Throughput peaks ${where}: ${num(peak.transactions_per_s)} ${unit}s a second.`;
}

/** Who loaded the server at its only level. Where nothing saw its requests no number of users is known: what the server told of its clients stands for it. */
function loadersOf(run: Pick<RunInfo, 'levels'>, only: Verdict): string {
  const result = run.levels.find((level) => level.index === only.index)?.result;
  if (!result || !isRecorded(run) || result.latency_ms.mean > 0) return users(only.users);
  const { sessions } = result;
  if (!sessions) return only.users > 0 ? users(only.users) : 'An unknown number of clients';
  return `${num(sessions.clients_mean)} connected clients, ${num(sessions.active_mean)} of them in a statement on average`;
}

/** How far the server kept up with a sweep over rates. */
function ratesVerdict(run: RunInfo): string {
  const axis = axisOf(run);
  const swept = run.levels.filter((level) => level.purpose === 'sweep').sort((a, b) => axis.at(a) - axis.at(b));
  const missed = swept.find((level) => level.result.arrivals?.held === false);
  const held = swept.filter((level) => level.result.arrivals?.held !== false && (!missed || axis.at(level) < axis.at(missed))).at(-1);
  if (!held) return `No rate was kept up with: ${swept.map(axis.name).join(', ')}.`;
  return `The server kept up with ${axis.name(held)}${missed ? `, and not with ${axis.name(missed)}` : ''}.`;
}

export function badgesOf(head: Head): Badge[] {
  const { run, explanation, problems } = head;
  const badges: Badge[] = [];
  const axis = axisOf(run);
  const named = (verdict: Verdict) => {
    const level = run.levels.find((one) => one.index === verdict.index);
    return level ? axis.name(level) : users(verdict.users);
  };
  if (run.ended === null) {
    badges.push({ text: 'not ended', tone: 'bad', why: 'The recording stops without an end: the run goes on, or it was killed.' });
  } else if (run.ended.how === 'cut_short') {
    badges.push({ text: `cut short: ${run.ended.why}`, tone: 'bad', why: run.ended.why });
  } else {
    badges.push({ text: 'complete', tone: 'good', why: 'Every level ran to its end.' });
  }
  const invalid = explanation.levels.filter((level) => !level.valid);
  if (invalid.length > 0) {
    badges.push({
      text: `${invalid.length} of ${explanation.levels.length} levels invalid`,
      tone: 'bad',
      why: invalid.map((level) => `${named(level)}: ${level.invalid_why}`).join('\n'),
    });
  }
  const unstable = explanation.levels.filter((level) => level.steadiness.is === 'unstable_from');
  if (unstable.length > 0) {
    badges.push({ text: `${unstable.length} ${unstable.length === 1 ? 'level' : 'levels'} unstable`, tone: 'bad', why: unstable.map(named).join(', ') });
  }
  if (explanation.drift?.significant) {
    const { drift } = explanation;
    const text = `drifted: ${num(drift.first_per_s)} → ${num(drift.repeat_per_s)}/s at ${users(drift.users)}`;
    badges.push({ text, tone: 'bad', why: 'The best level, repeated at the end, gave another throughput.' });
  }
  if (problems.length > 0) {
    badges.push({ text: `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'} of the recording`, tone: 'bad', why: problems.join('\n') });
  }
  return badges;
}
