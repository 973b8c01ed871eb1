/** The kind of a run: whether another program drove the load, and which names its tables and charts use. Pure. */

import type { NotMeasured, RunInfo } from '../data/model.ts';

/** Of such a run requests are counted and their mean time is known; no percentiles, no errors, nothing of the generator. */
export function isRecorded(run: Pick<RunInfo, 'levels'>): boolean {
  return run.levels.length > 0 && run.levels.every((level) => level.result.pacing?.loop === 'recorded');
}

/** Returns the name of the watched processes if they are not a server. Such a run has no requests. */
export function processOf({ spec }: Pick<RunInfo, 'spec'>): string | null {
  return spec.process;
}

/** How the Performance Schema was set, such as "as the server had it: off"; empty where that was not recorded. */
export function performanceSchemaOf({ spec }: Pick<RunInfo, 'spec'>): string {
  const setup = spec.performance_schema;
  return setup === null ? '' : setup.words || (setup.asked ?? '');
}

/** "the disk: it has no counters". */
export function notMeasuredWords({ what, reason }: NotMeasured): string {
  return reason === '' ? what : `${what}: ${reason}`;
}

/** What throughput and times are of. */
export function unitOfRun(run: Pick<RunInfo, 'levels'>): 'transaction' | 'request' {
  return isRecorded(run) ? 'request' : 'transaction';
}
