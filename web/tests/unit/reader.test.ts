import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Reader } from '../../src/lib/reader.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function reader() {
  const [done, failed] = [vi.fn(), vi.fn()];
  const requests: { signal: AbortSignal; answer: (text: string) => void; refuse: (why: Error) => void }[] = [];
  const read = (signal: AbortSignal) => new Promise<string>((answer, refuse) => requests.push({ signal, answer, refuse }));
  return { of: new Reader<string>(done, failed), done, failed, requests, read };
}

it('asks once for what stays wanted, and drops what is wanted no more', async () => {
  const { of, done, requests, read } = reader();
  for (let step = 0; step < 5; step++) {
    of.want(read, 40);
    vi.advanceTimersByTime(20);
  }
  expect(requests.length).toBe(0);
  vi.advanceTimersByTime(20);
  expect(requests.length).toBe(1);
  of.want(read, 40);
  expect(requests[0]?.signal.aborted).toBe(true);
  requests[0]?.answer('late');
  await vi.advanceTimersByTimeAsync(40);
  expect(done).not.toHaveBeenCalled();
  requests[1]?.answer('now');
  await vi.advanceTimersByTimeAsync(0);
  expect(done.mock.calls).toEqual([['now']]);
});

it('lets a slow answer arrive before it asks for more of the same', async () => {
  const { of, done, requests, read } = reader();
  of.want(read, 0);
  vi.advanceTimersByTime(0);
  of.renew();
  of.renew();
  expect(requests.length).toBe(1);
  requests[0]?.answer('one');
  await vi.advanceTimersByTimeAsync(0);
  expect([done.mock.calls.length, requests.length]).toEqual([1, 2]);
  requests[1]?.answer('two');
  await vi.advanceTimersByTimeAsync(0);
  expect(requests.length).toBe(2);
  of.renew();
  expect(requests.length).toBe(3);
});

it('says why nothing was read, and nothing once it was stopped', async () => {
  const { of, failed, requests, read } = reader();
  of.want(read, 0);
  vi.advanceTimersByTime(0);
  requests[0]?.refuse(new Error('gone'));
  await vi.advanceTimersByTimeAsync(0);
  expect(failed.mock.calls).toEqual([['gone']]);
  of.stop();
  of.renew();
  expect(requests.length).toBe(1);
});

it('lets a slow read end while the window moves on, and never goes back to an older one', async () => {
  const { of, done, requests, read } = reader();
  for (let tick = 0; tick < 4; tick++) {
    of.want(read, 0, true);
    vi.advanceTimersByTime(0);
  }
  expect(requests.map((request) => request.signal.aborted)).toEqual([false, true, true, false]);
  requests[3]?.answer('newest');
  await vi.advanceTimersByTimeAsync(0);
  expect(requests[0]?.signal.aborted).toBe(true);
  requests[0]?.answer('oldest');
  await vi.advanceTimersByTimeAsync(0);
  expect(done.mock.calls).toEqual([['newest']]);

  of.want(read, 0, true);
  vi.advanceTimersByTime(0);
  of.want(read, 0);
  expect(requests[4]?.signal.aborted).toBe(true);
});
