type ReadTask<T> = (signal: AbortSignal) => Promise<T>;

/**
 * Reads what the latest request asks for, and aborts older reads. While a live run moves the view, the oldest read may end:
 * otherwise slow reads would never end.
 */
export class Reader<T> {
  readonly #done: (read: T) => void;
  readonly #failed: (why: string) => void;
  #read: ReadTask<T> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Reads that have begun, oldest first. */
  #begun: AbortController[] = [];
  #isStale = false;

  constructor(done: (read: T) => void, failed: (why: string) => void) {
    [this.#done, this.#failed] = [done, failed];
  }

  /** Requests another read, after `stillMs` without a further request. `movesOn`: the same read over another window. */
  want(read: ReadTask<T>, stillMs: number, movesOn = false): void {
    clearTimeout(this.#timer);
    this.#giveUp(movesOn ? 1 : 0);
    this.#read = read;
    this.#timer = setTimeout(() => this.#begin(), stillMs);
  }

  /** Repeats the current read: there are new data. */
  renew(): void {
    if (this.#timer !== undefined) return;
    if (this.#begun.length > 0) this.#isStale = true;
    else this.#begin();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#giveUp(0);
    [this.#read, this.#timer, this.#isStale] = [null, undefined, false];
  }

  #giveUp(count: number): void {
    for (const controller of this.#begun.splice(count)) controller.abort();
  }

  #begin(): void {
    [this.#timer, this.#isStale] = [undefined, false];
    if (!this.#read) return;
    const stop = new AbortController();
    this.#begun.push(stop);
    const ended = (settle: () => void) => {
      const place = this.#begun.indexOf(stop);
      if (place < 0) return;
      for (const older of this.#begun.splice(0, place + 1)) if (older !== stop) older.abort();
      settle();
      if (this.#isStale && this.#begun.length === 0) this.renew();
    };
    this.#read(stop.signal).then(
      (found) => ended(() => this.#done(found)),
      (error: unknown) => ended(() => this.#failed(error instanceof Error ? error.message : String(error))),
    );
  }
}
