/** Reads what is wanted now: what is wanted no more is given up, and what there is more of is read again once it has been read. */
export class Reader<T> {
  readonly #done: (read: T) => void;
  readonly #failed: (why: string) => void;
  #stop: AbortController | null = null;
  #read: ((signal: AbortSignal) => Promise<T>) | null = null;
  #isReading = false;
  #isStale = false;

  constructor(done: (read: T) => void, failed: (why: string) => void) {
    [this.#done, this.#failed] = [done, failed];
  }

  /** Something else is wanted, once nothing else has been wanted for so long. */
  want(read: (signal: AbortSignal) => Promise<T>, stillMs: number): void {
    this.stop();
    const stop = new AbortController();
    [this.#stop, this.#read] = [stop, read];
    const timer = setTimeout(() => this.#begin(), stillMs);
    stop.signal.addEventListener('abort', () => clearTimeout(timer));
  }

  /** There is more of what is wanted. */
  renew(): void {
    if (this.#isReading) this.#isStale = true;
    else this.#begin();
  }

  stop(): void {
    this.#stop?.abort();
    [this.#stop, this.#read, this.#isReading, this.#isStale] = [null, null, false, false];
  }

  #begin(): void {
    const [stop, read] = [this.#stop, this.#read];
    if (!stop || !read) return;
    [this.#isReading, this.#isStale] = [true, false];
    const ended = (tell: () => void) => {
      if (stop.signal.aborted) return;
      this.#isReading = false;
      tell();
      if (this.#isStale) this.#begin();
    };
    read(stop.signal).then(
      (found) => ended(() => this.#done(found)),
      (error: unknown) => ended(() => this.#failed(error instanceof Error ? error.message : String(error))),
    );
  }
}
