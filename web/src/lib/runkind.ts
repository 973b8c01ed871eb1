/** The kind of a run: whether another program drove the load, and which names its tables and charts use. Pure. */

import type { RunInfo } from '../data/model.ts';

/** What a level's result has for its pacing where something else than whyso loaded the server. */
const AS_IT_CAME = 'as it came';

/** Of such a run requests are counted and their mean time is known; no percentiles, no errors, nothing of the generator. */
export function isRecorded(run: Pick<RunInfo, 'levels'>): boolean {
  return run.levels.length > 0 && run.levels.every((level) => level.result.pacing === AS_IT_CAME);
}

/** Returns the name of the watched processes if they are not a server. Such a run has no requests. */
export function processOf({ spec }: Pick<RunInfo, 'spec'>): string | null {
  const isNamed = spec !== null && typeof spec === 'object' && 'process' in spec;
  return isNamed && typeof spec.process === 'string' ? spec.process : null;
}

/** How the Performance Schema was set, such as "as the server had it: off"; empty where that was not recorded. */
export function performanceSchemaOf({ spec }: Pick<RunInfo, 'spec'>): string {
  const setting: unknown = spec !== null && typeof spec === 'object' && 'performance_schema' in spec ? spec.performance_schema : null;
  if (setting === null || typeof setting !== 'object') return '';
  if ('words' in setting && typeof setting.words === 'string') return setting.words;
  return 'asked' in setting && typeof setting.asked === 'string' ? setting.asked : '';
}

/** What throughput and times are of. */
export function unitOfRun(run: Pick<RunInfo, 'levels'>): 'transaction' | 'request' {
  return isRecorded(run) ? 'request' : 'transaction';
}
