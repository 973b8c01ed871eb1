/** What machines and their programs used over a window. Pure, except for the source that is read. */

import type { Column, SeriesHead } from '../data/model.ts';
import type { DataSource } from '../data/source.ts';
import type { Span } from './chartspec.ts';
import type { Machine } from './machines.ts';
import { meanOver, mostOver, perSecondOver } from './usage.ts';

/** CPU time by what it went to, each a share of all CPUs. */
export interface CpuShares {
  user: number;
  system: number;
  iowait: number;
  steal: number;
}

export interface MachineUse {
  machine: Machine;
  /** CPUs, by the time that they counted; null where that was not read. */
  cpus: number | null;
  shares: CpuShares | null;
  memory_bytes: number | null;
  /** Of the memory, what programs could not have had. */
  memory_used: number | null;
  /** The device with the most traffic: layered devices repeat what those below them do. */
  disk: { name: string; read_per_s: number; written_per_s: number; busy: number | null } | null;
  /** All interfaces except loopback. */
  network: { received_per_s: number; sent_per_s: number } | null;
  /** What its clock shows more than the recording's, and how far that may be wrong; null where both are the same clock. */
  clock: { offset_ns: number; bound_ns: number } | null;
  /** The one with the most CPU time first; what is left of the CPUs' busy time last. Null where no programs were read. */
  programs: Program[] | null;
}

export type ProgramKind = 'server' | 'node' | 'client' | 'program' | 'unclear' | 'whyso' | 'rest';

/** All processes of one name. */
export interface Program {
  kind: ProgramKind;
  name: string;
  /** CPUs that it kept busy. */
  cpus: number;
  disk_per_s: number | null;
  resident_bytes: number | null;
  /** Its position in the series; null for the rest. */
  series: number | null;
  /** Those that it was found in most, by samples; empty where it was not sampled. */
  functions: ProgramFunction[];
}

/** A function of a program. */
export interface ProgramFunction {
  name: string;
  /** Of the program's sampled time, what was in the function itself; 0 to 1. */
  share: number;
  /** Its position in the series. */
  series: number;
}

/** More readings than a request gives by themselves come as buckets, of which the middle is exact enough. */
const PIXELS = 4000;
const USER = ['user_ns', 'nice_ns'];
const SYSTEM = ['system_ns', 'irq_ns', 'softirq_ns'];
const WAITING = ['iowait_ns', 'steal_ns', 'idle_ns'];
const PROGRAMS: Record<string, ProgramKind> = { cpu_ns: 'program', clients_cpu_ns: 'client', unclear_cpu_ns: 'unclear' };
/** Of a CPU: what is left is not worth a line below it. */
const REST_MIN = 0.005;
/** Functions of a program that are shown. */
const FUNCTIONS_SHOWN = 3;

/** The series that a machine's numbers are of, by position. */
export function seriesOf(machine: Machine, series: SeriesHead[]): number[] {
  const isWanted = ({ host, source, metric, instance }: SeriesHead): boolean => {
    if (!machine.hosts.includes(host)) return false;
    switch (source) {
      case 'cpu':
        return instance === 'all' && [...USER, ...SYSTEM, ...WAITING].includes(metric);
      case 'memory':
        return metric === 'total_bytes' || metric === 'available_bytes';
      case 'disk':
        return metric === 'read_bytes' || metric === 'write_bytes' || metric === 'busy_ns';
      case 'net':
        return (metric === 'received_bytes' || metric === 'sent_bytes') && instance !== 'lo';
      case 'clock':
        return machine.hasOwnClock && (metric === 'offset_ns' || metric === 'bound_ns');
      case 'neighbours':
      case 'programs':
        return true;
      case 'server_process':
        return metric === 'run_ns' && instance === 'server';
      case 'generator_process':
        return metric === 'run_ns' && instance === 'generator';
      default:
        return false;
    }
  };
  return series.flatMap((entry, at) => (isWanted(entry) ? [at] : []));
}

/** Reads what machines used over a window. `serverName`: what the server's program is called. */
export async function readUse(source: DataSource, machines: Machine[], span: Span, serverName: string, signal?: AbortSignal): Promise<MachineUse[]> {
  const { series } = source.head;
  return Promise.all(
    machines.map(async (machine) => {
      const numbers = seriesOf(machine, series);
      if (numbers.length === 0) return useOf(machine, [], span, serverName);
      const { lines } = await source.lines(numbers, { ...span, px: PIXELS, mode: 'raw', top: 0, sum: false }, signal);
      const read = lines.flatMap((line): ReadSeries[] => (line.series === null ? [] : [{ at: line.series, about: series[line.series] as SeriesHead, column: line.column }]));
      return useOf(machine, read, span, serverName);
    }),
  );
}

export interface ReadSeries {
  at: number;
  about: SeriesHead;
  column: Column;
}

export function useOf(machine: Machine, read: ReadSeries[], span: Span, serverName: string): MachineUse {
  const of = (source: string, metric: string) => read.filter(({ about }) => about.source === source && about.metric === metric);
  const sum = (source: string, metrics: string[]): number | null => {
    const rates = metrics.flatMap((metric) => of(source, metric)).map(({ column }) => perSecondOver(column, span));
    const known = rates.filter((rate) => rate !== null);
    return known.length === 0 ? null : known.reduce((total, rate) => total + rate, 0);
  };
  const gauge = (source: string, metric: string, over: (column: Column, span: Span) => number | null) => {
    const found = of(source, metric)[0];
    return found ? over(found.column, span) : null;
  };
  const all_ns = sum('cpu', [...USER, ...SYSTEM, ...WAITING]);
  const share = (metrics: string[]) => (all_ns ? (sum('cpu', metrics) ?? 0) / all_ns : 0);
  const shares = all_ns ? { user: share(USER), system: share(SYSTEM), iowait: share(['iowait_ns']), steal: share(['steal_ns']) } : null;
  const [total, available] = [gauge('memory', 'total_bytes', meanOver), gauge('memory', 'available_bytes', meanOver)];
  const [received, sent] = [sum('net', ['received_bytes']), sum('net', ['sent_bytes'])];
  const [offset, bound] = [gauge('clock', 'offset_ns', meanOver), gauge('clock', 'bound_ns', mostOver)];
  const busy = shares && all_ns ? ((shares.user + shares.system) * all_ns) / 1e9 : null;
  return {
    machine,
    cpus: all_ns === null ? null : Math.round(all_ns / 1e9),
    shares,
    memory_bytes: total,
    memory_used: total && available !== null ? 1 - available / total : null,
    disk: busiestDisk(read, span),
    network: received === null || sent === null ? null : { received_per_s: received, sent_per_s: sent },
    clock: machine.hasOwnClock && offset !== null && bound !== null ? { offset_ns: offset, bound_ns: bound } : null,
    programs: programsOf(machine, read, span, serverName, busy),
  };
}

function busiestDisk(read: ReadSeries[], span: Span): MachineUse['disk'] {
  const of = (name: string, metric: string) => {
    const found = read.find(({ about }) => about.source === 'disk' && about.metric === metric && about.instance === name);
    return found ? perSecondOver(found.column, span) : null;
  };
  const names = new Set(read.filter(({ about }) => about.source === 'disk').map(({ about }) => about.instance));
  const devices = [...names].flatMap((name) => {
    const [read_per_s, written_per_s, busy_ns] = [of(name, 'read_bytes'), of(name, 'write_bytes'), of(name, 'busy_ns')];
    return read_per_s === null || written_per_s === null ? [] : [{ name, read_per_s, written_per_s, busy: busy_ns === null ? null : busy_ns / 1e9 }];
  });
  const traffic = (device: { read_per_s: number; written_per_s: number }) => device.read_per_s + device.written_per_s;
  return devices.sort((a, b) => traffic(b) - traffic(a) || a.name.localeCompare(b.name))[0] ?? null;
}

/** What the samples call the whyso that records; another one is a program like others. */
const OBSERVER = 'whyso (this one)';

/** `busy`: CPUs of the machine that were busy. */
function programsOf(machine: Machine, read: ReadSeries[], span: Span, serverName: string, busy: number | null): Program[] | null {
  const ofProgram = (name: string, metric: string, over: (column: Column, span: Span) => number | null) => {
    const found = read.find(({ about }) => about.source === 'neighbours' && about.metric === metric && about.instance === name);
    return found ? over(found.column, span) : null;
  };
  const programs = read.flatMap(({ at, about, column }): Program[] => {
    const kind = kindOf(about, machine);
    const ns = kind && perSecondOver(column, span);
    if (!kind || ns === null) return [];
    const names: Partial<Record<ProgramKind, string>> = { server: serverName, node: about.host, whyso: 'whyso' };
    const isOther = kind === 'program';
    return [{
      kind,
      name: names[kind] ?? about.instance,
      cpus: ns / 1e9,
      disk_per_s: isOther ? ofProgram(about.instance, 'disk_bytes', perSecondOver) : null,
      resident_bytes: isOther ? ofProgram(about.instance, 'resident_bytes', meanOver) : null,
      series: at,
      functions: functionsOf(kind === 'whyso' ? OBSERVER : about.source === 'neighbours' ? about.instance : null, read, span),
    }];
  });
  if (programs.length === 0) return null;
  const shown = programs.filter((program) => program.cpus > 0).sort((a, b) => b.cpus - a.cpus || a.name.localeCompare(b.name));
  const left = busy === null ? 0 : busy - shown.reduce((total, program) => total + program.cpus, 0);
  if (left >= REST_MIN) shown.push({ kind: 'rest', name: '', cpus: left, disk_per_s: null, resident_bytes: null, series: null, functions: [] });
  return shown;
}

/** The functions that a program was found in most. `name`: what the samples call it; null for one that has none. */
function functionsOf(name: string | null, read: ReadSeries[], span: Span): ProgramFunction[] {
  const sampled = read.find(({ about }) => about.source === 'programs' && about.metric === 'sampled_ns' && about.instance === name);
  const all = sampled ? perSecondOver(sampled.column, span) : null;
  if (name === null || !all) return [];
  const prefix = `${name}: `;
  const functions = read.flatMap(({ at, about, column }): ProgramFunction[] => {
    if (about.source !== 'programs' || about.metric !== 'function_ns' || !about.instance.startsWith(prefix)) return [];
    const ns = perSecondOver(column, span);
    return ns ? [{ name: about.instance.slice(prefix.length), share: Math.min(1, ns / all), series: at }] : [];
  });
  return functions.sort((a, b) => b.share - a.share || a.name.localeCompare(b.name)).slice(0, FUNCTIONS_SHOWN);
}

function kindOf({ host, source, metric }: SeriesHead, machine: Machine): ProgramKind | null {
  switch (source) {
    case 'neighbours':
      return PROGRAMS[metric] ?? null;
    case 'generator_process':
      return 'whyso';
    case 'server_process':
      return host === machine.name ? 'server' : 'node';
    default:
      return null;
  }
}
