import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Reader } from '../../src/lib/reader.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function reader() {
  const [done, failed] = [vi.fn(), vi.fn()];
  const asked: { signal: AbortSignal; answer: (text: string) => void; refuse: (why: Error) => void }[] = [];
  const read = (signal: AbortSignal) => new Promise<string>((answer, refuse) => asked.push({ signal, answer, refuse }));
  return { of: new Reader<string>(done, failed), done, failed, asked, read };
}

it('asks once for what stays wanted, and drops what is wanted no more', async () => {
  const { of, done, asked, read } = reader();
  for (let step = 0; step < 5; step++) {
    of.want(read, 40);
    vi.advanceTimersByTime(20);
  }
  expect(asked.length).toBe(0);
  vi.advanceTimersByTime(20);
  expect(asked.length).toBe(1);
  of.want(read, 40);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer('late');
  await vi.advanceTimersByTimeAsync(40);
  expect(done).not.toHaveBeenCalled();
  asked[1]?.answer('now');
  await vi.advanceTimersByTimeAsync(0);
  expect(done.mock.calls).toEqual([['now']]);
});

it('lets a slow answer arrive before it asks for more of the same', async () => {
  const { of, done, asked, read } = reader();
  of.want(read, 0);
  vi.advanceTimersByTime(0);
  of.renew();
  of.renew();
  expect(asked.length).toBe(1);
  asked[0]?.answer('one');
  await vi.advanceTimersByTimeAsync(0);
  expect([done.mock.calls.length, asked.length]).toEqual([1, 2]);
  asked[1]?.answer('two');
  await vi.advanceTimersByTimeAsync(0);
  expect(asked.length).toBe(2);
  of.renew();
  expect(asked.length).toBe(3);
});

it('says why nothing was read, and nothing once it was stopped', async () => {
  const { of, failed, asked, read } = reader();
  of.want(read, 0);
  vi.advanceTimersByTime(0);
  asked[0]?.refuse(new Error('gone'));
  await vi.advanceTimersByTimeAsync(0);
  expect(failed.mock.calls).toEqual([['gone']]);
  of.stop();
  of.renew();
  expect(asked.length).toBe(1);
});

it('lets a slow read end while the window moves on, and never goes back to an older one', async () => {
  const { of, done, asked, read } = reader();
  for (let tick = 0; tick < 4; tick++) {
    of.want(read, 0, true);
    vi.advanceTimersByTime(0);
  }
  expect(asked.map((one) => one.signal.aborted)).toEqual([false, true, true, false]);
  asked[3]?.answer('newest');
  await vi.advanceTimersByTimeAsync(0);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer('oldest');
  await vi.advanceTimersByTimeAsync(0);
  expect(done.mock.calls).toEqual([['newest']]);

  of.want(read, 0, true);
  vi.advanceTimersByTime(0);
  of.want(read, 0);
  expect(asked[4]?.signal.aborted).toBe(true);
});
