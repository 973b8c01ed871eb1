/** The headline of the page: built from the findings, without a new judgement. Pure. */

import type { Head, RunInfo, LevelVerdict } from '../data/model.ts';
import { resultOf } from './answer.ts';
import { axisOf } from './axis.ts';
import { processOf } from './runkind.ts';
import { howUnsteady } from './steadiness.ts';
import { count, number, rate, users } from './words.ts';

export interface Badge {
  text: string;
  tone: 'good' | 'bad' | 'quiet';
  why: string;
}

/** The workload, as far as the spec or the command line names it. */
export function workloadOf(run: RunInfo): string {
  return run.spec.workload ?? run.command[2] ?? run.id;
}

/** What kind of machine it is: "a kvm virtual machine"; nothing for bare metal. A guess may be a whole phrase already. */
export function machineKind(virtualization: string): string {
  if (virtualization === '' || virtualization === 'none') return '';
  return virtualization.includes('virtual machine') ? virtualization : `a ${virtualization} virtual machine`;
}

/** The headline of the explanation, which every report has. */
export function verdictOf({ run, explanation }: Pick<Head, 'run' | 'explanation'>): string {
  if (explanation.levels.length === 0 && run.ended === null && processOf(run) === null) return 'This recording is running.';
  return explanation.headline || 'No level of load was measured.';
}

/** What the page begins with: where the time of a request went, else the result of a level, else the headline. */
export function titleOf(head: Head): string {
  return head.answer.requests[0]?.headline ?? (resultOf(head) || verdictOf(head));
}

export function badgesOf(head: Head): Badge[] {
  const { run, explanation, problems } = head;
  const badges: Badge[] = [];
  const axis = axisOf(run);
  const named = (verdict: LevelVerdict) => {
    const level = run.levels.find((level) => level.index === verdict.index);
    return level ? axis.name(level) : users(verdict.users);
  };
  if (run.ended === null) {
    badges.push({ text: 'not ended', tone: 'bad', why: 'The recording has no end. The run is still being recorded, or it was killed.' });
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
  const unstable = explanation.levels.filter((level) => howUnsteady(level.steadiness) !== '');
  if (unstable.length > 0) {
    badges.push({ text: `${count(unstable.length, 'level')} unstable`, tone: 'bad', why: unstable.map((level) => `${named(level)}: ${howUnsteady(level.steadiness)}`).join('\n') });
  }
  if (explanation.drift?.significant) {
    const { drift } = explanation;
    const text = `drifted: ${number(drift.first_per_s)} → ${rate(drift.repeat_per_s)} at ${users(drift.users)}`;
    badges.push({ text, tone: 'bad', why: 'The best level was repeated at the end and had a different throughput.' });
  }
  if (problems.length > 0) {
    badges.push({ text: `${count(problems.length, 'problem')} of the recording`, tone: 'bad', why: problems.join('\n') });
  }
  return badges;
}
