/** The types of what the page reads as JSON, which are generated from Rust, and the page's own types of data. */

export type * from './generated.ts';

/** The samples of one series. A bucket of an envelope has its least, quartiles and greatest value beside the median. */
export interface Column {
  /** Seconds since the head's origin, ascending. */
  t: Float64Array;
  /** NaN is a gap. For an envelope, the median. */
  v: Float64Array;
  band?: { min: Float64Array; q1: Float64Array; q3: Float64Array; max: Float64Array };
}

/** A line of a view of the Performance Schema, by column; null where the server does not count it. */
export type PfsRow = (number | null)[];
