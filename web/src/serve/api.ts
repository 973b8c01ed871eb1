/** Requests to the page's server. */

export type { EventList, ListedRun, ListedStudy, RunLabels, RunList, StudyList } from './generated.ts';

const ROOT = '/api/v1';

/** A failed request, with one sentence for the user. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function signIn(token: string): Promise<void> {
  await fetch(`${ROOT}/session`, { method: 'POST', headers: { authorization: `Bearer ${token}` } }).catch(() => undefined);
}

async function ask(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(ROOT + path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new RequestError(0, 'The server does not answer: is `whyso serve` still running?');
  }
  if (response.ok) return response;
  const answer = (await response.json().catch(() => null)) as { error?: string } | null;
  throw new RequestError(response.status, answer?.error ?? `The server answered ${response.status}.`);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(path, signal ? { signal } : {})).json()) as T;
}

export async function getText(path: string): Promise<string> {
  return (await ask(path)).text();
}

export async function getBytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await ask(path, signal ? { signal } : {})).arrayBuffer();
}

export async function post(path: string, body: unknown): Promise<void> {
  await ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

export async function postJson<T>(path: string, body: unknown): Promise<T> {
  return (await (await ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()) as T;
}

/** A tar archive, read from the disk as it is sent. */
export async function sendFile<T>(path: string, file: File, signal: AbortSignal): Promise<T> {
  return (await (await ask(path, { method: 'POST', headers: { 'content-type': 'application/x-tar' }, body: file, signal })).json()) as T;
}

export async function put(path: string, body: unknown): Promise<void> {
  await ask(path, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

export async function putJson<T>(path: string, body: unknown): Promise<T> {
  return (await (await ask(path, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()) as T;
}

export async function postText<T>(path: string, body: string): Promise<T> {
  return (await (await ask(path, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })).json()) as T;
}

export async function remove(path: string): Promise<void> {
  await ask(path, { method: 'DELETE' });
}

/** Returns the address of one file with these runs, or with all that have ended if the list is empty. */
export function backupAddress(ids: string[]): string {
  return `${ROOT}/runs/backup${ids.length > 0 ? `?ids=${ids.map(encodeURIComponent).join(',')}` : ''}`;
}

export function runPath(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}
