/** Reads the blocks that `crates/report/src/codec.rs` writes; its module docs describe the bytes. */

const FORM_DECIMALS = 1;
const FORM_FLOATS = 2;

/** The series of an inflated block: each is decoded on first use, since a chart needs only some of many. */
export class Block {
  readonly length: number;
  #bytes: Uint8Array[] = [];
  #decoded: (Float64Array | undefined)[] = [];

  constructor(bytes: Uint8Array) {
    const reader = new Reader(bytes);
    while (!reader.atEnd()) {
      const length = reader.varint();
      this.#bytes.push(reader.take(length));
    }
    this.length = this.#bytes.length;
  }

  /** NaN stands for a missing value. */
  series(slot: number): Float64Array {
    const bytes = this.#bytes[slot];
    if (!bytes) throw new Error('A block of samples is shorter than the report says.');
    return (this.#decoded[slot] ??= decodeSeries(bytes));
  }

  all(): Float64Array[] {
    return this.#bytes.map((_, slot) => this.series(slot));
  }
}

export function decodeSeries(bytes: Uint8Array): Float64Array {
  const reader = new Reader(bytes);
  const form = reader.byte();
  const factor = form === FORM_DECIMALS ? 10 ** reader.byte() : 1;
  const count = reader.varint();
  const missingCount = reader.varint();
  const values = new Float64Array(count);
  let position = 0;
  for (let i = 0; i < missingCount; i++) {
    position += reader.varint();
    values[position] = NaN;
  }
  if (form === FORM_FLOATS) {
    readFloats(reader, values, count - missingCount);
  } else if (missingCount === 0 && count > 0) {
    readWhole(reader, values, factor);
  } else if (count > missingCount) {
    readSteps(reader, values, factor);
  }
  return values;
}

/** Without a missing value: most series are so, and long ones are what the page waits for. */
function readWhole(reader: Reader, values: Float64Array, factor: number): void {
  let value = reader.zigzag();
  const median = reader.zigzag();
  values[0] = value / factor;
  for (let i = 1; i < values.length; i++) {
    value += median + reader.zigzag();
    values[i] = value / factor;
  }
}

function readSteps(reader: Reader, values: Float64Array, factor: number): void {
  let value = reader.zigzag();
  const median = reader.zigzag();
  let isFirst = true;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i])) continue;
    if (!isFirst) value += median + reader.zigzag();
    isFirst = false;
    values[i] = value / factor;
  }
}

function readFloats(reader: Reader, values: Float64Array, present: number): void {
  const planes = reader.take(present * 8);
  const bits = new DataView(new ArrayBuffer(8));
  let order = 0;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i])) continue;
    for (let plane = 0; plane < 8; plane++) {
      bits.setUint8(plane, bits.getUint8(plane) ^ (planes[plane * present + order] ?? 0));
    }
    values[i] = bits.getFloat64(0);
    order++;
  }
}

class Reader {
  #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new Error('the samples end in the middle of a series');
    this.#at++;
    return byte;
  }

  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Error('the samples end in the middle of a series');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  /** Exact up to 2^53: by multiplication, since shifts work on 32 bits only. */
  varint(): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at++;
      return first;
    }
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  }

  zigzag(): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at++;
      return (first >> 1) ^ -(first & 1);
    }
    const coded = this.varint();
    return coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
  }
}
