/**
 * How values are written for people: the same as the crate `words` writes them. `crates/words/fixtures.json` holds both together. Pure.
 */

/** What is written for a value that is not a number. */
export const NOTHING = '–';

const MINUS = '−';
/** Powers of ten: a product with one of these is the same number in every language. */
const POWERS = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6] as const;
/** Smaller numbers are written with a power of ten. */
const PLAIN_MIN = 0.0000995;
/** Numbers from this on are written with a power of ten. */
const PLAIN_END = 1e15;
/** A share this close to 1 is 1: sums of shares end this close to it. */
const SHARE_ROUNDING = 1e-9;
/** From this share of a unit on, a value is written in it: rounded to three digits it is 1. */
const UNIT_MIN = 0.9995;

type Units = readonly (readonly [number, string])[];
const TIMES: Units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
const SIZES: Units = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
const LETTERS: Units = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** A value that may be absent: "–" is written for it. */
type Maybe = number | null | undefined;

/** Three significant digits from 1 on and two below, whole from 99.95 on, in groups of three digits; trailing zeros dropped. */
export function number(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(value);
  if (size === 0) return '0';
  return signed(value, isPlain(size) ? significantDigits(size, size < 1 ? 2 : 3, true) : withPowerOfTen(size, size < 1 ? 1 : 2));
}

/** A difference: a number with its sign, also where that is a plus. */
export function signedNumber(value: Maybe): string {
  return `${isNumber(value) && value > 0 ? '+' : ''}${number(value)}`;
}

/** A whole number in groups of three digits. */
export function whole(value: Maybe): string {
  return isNumber(value) ? signed(value, grouped(String(Math.abs(Math.round(value))))) : NOTHING;
}

/** For an axis: three significant digits, and a letter for thousands and more: 1.5k, 20M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (!isPlain(size)) return number(value);
  for (const [factor, letter] of LETTERS) {
    if (size / factor >= UNIT_MIN) return signed(value, significantDigits(size / factor, 3, false)) + letter;
  }
  return signed(value, significantDigits(size, 3, false));
}

/** How many times as large one value is as another: three decimals below 10, where they decide whether the values differ. */
export function ratio(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  const thousandths = Math.round(Math.abs(value) * 1e3);
  return thousandths >= 100 && thousandths < 10_000 ? signed(value, decimal(thousandths, 3, true)) : number(value);
}

/** A probability with three decimals; what would be 0 with these is "<0.001". */
export function pValue(p: Maybe): string {
  if (!isNumber(p)) return NOTHING;
  return p < 0.001 ? '<0.001' : decimal(Math.round(p * 1e3), 3, true);
}

/** A share as a percentage: two significant digits below 10 %, whole from there on. Less than everything is never "100 %". */
export function percent(share: Maybe): string {
  const text = percentNumber(share);
  return text === NOTHING ? text : `${text} %`;
}

/** The number of `percent`, for a column whose head has the sign. */
export function percentNumber(share: Maybe): string {
  if (!isNumber(share)) return NOTHING;
  const percentage = share * 100;
  const size = Math.abs(percentage);
  if (!isPlain(size)) return number(percentage);
  // One decimal, rounded down.
  if (size >= 99.5 && size < 100 * (1 - SHARE_ROUNDING)) return signed(percentage, decimal(Math.floor(size * 10), 1, true));
  return signed(percentage, significantDigits(size, 2, true));
}

/** By which percentage something grew or shrank, with its sign. */
export function percentChange(share: Maybe): string {
  return `${isNumber(share) && share > 0 ? '+' : ''}${percent(share)}`;
}

/** A time in the unit that suits it: s, ms, µs or ns. */
export function nanoseconds(ns: Maybe): string {
  if (!isNumber(ns)) return NOTHING;
  return ns === 0 ? '0 ms' : inUnit(ns, TIMES, 'ns');
}

export function milliseconds(ms: Maybe): string {
  return isNumber(ms) ? nanoseconds(ms * 1e6) : NOTHING;
}

export function seconds(s: Maybe): string {
  return isNumber(s) ? nanoseconds(s * 1e9) : NOTHING;
}

/** About how long something takes, for people who wait for it: "45 s", "3 min", "1.5 h". */
export function roughTime(s: Maybe): string {
  if (!isNumber(s)) return NOTHING;
  if (s < 89.5) return `${number(Math.round(s))} s`;
  if (s < 119.5 * 60) return `${number(Math.round(s / 60))} min`;
  return `${number(Math.round(s / 360) / 10)} h`;
}

/** A time of the run as minutes and seconds, with hours where there are some; with decimals where the step between two such times needs them. */
export function clock(s: number, step_s = 1): string {
  if (!isNumber(s)) return NOTHING;
  const decimals = step_s < 0.01 ? 3 : step_s < 0.1 ? 2 : step_s < 1 ? 1 : 0;
  const scale = POWERS[decimals];
  const scaled = Math.round(Math.abs(s) * scale);
  const whole_s = Math.floor(scaled / scale);
  const [hours, minutes] = [Math.floor(whole_s / 3600), Math.floor(whole_s / 60) % 60];
  const head = hours > 0 ? `${hours}:${padded(minutes, 2)}` : String(minutes);
  const fraction = decimals > 0 ? `.${padded(scaled % scale, decimals)}` : '';
  return `${s < 0 && scaled > 0 ? MINUS : ''}${head}:${padded(whole_s % 60, 2)}${fraction}`;
}

/** Bytes in the largest binary unit that they fill. */
export function bytes(count: Maybe): string {
  return isNumber(count) ? inUnit(count, SIZES, 'B') : NOTHING;
}

/** How often per second. */
export function rate(per_s: Maybe): string {
  return amount(per_s, '1/s');
}

/**
 * A quantity with its unit as a recording names it: "ns", "bytes", "1" for a count, "bytes/s" and the like. Times and bytes get the unit that
 * suits them, counts stand bare, other units follow the number.
 */
export function amount(value: Maybe, unit: string): string {
  if (!isNumber(value)) return NOTHING;
  const slash = unit.indexOf('/');
  const [of, per] = slash < 0 ? [unit, ''] : [unit.slice(0, slash), unit.slice(slash)];
  return quantity(value, of) + per;
}

function quantity(value: number, unit: string): string {
  switch (unit) {
    case 'ns':
      return nanoseconds(value);
    case 'us':
    case 'µs':
      return nanoseconds(value * 1e3);
    case 'ms':
      return milliseconds(value);
    case 's':
      return seconds(value);
    case 'bytes':
    case 'B':
      return bytes(value);
    case 'KiB':
      return bytes(value * 1024);
    case '1':
    case '':
      return number(value);
    default:
      return `${number(value)} ${unit}`;
  }
}

/** Two quantities of one unit with a text between them; a unit that suits both is written once. */
export function change(before: number, after: number, unit: string, between: string): string {
  const [first, second] = [amount(before, unit), amount(after, unit)];
  const [digits, name] = cut(first);
  const isSame = name !== undefined && name === cut(second)[1];
  return `${isSame ? digits : first}${between}${second}`;
}

/** The parts joined with commas, and "and" before the last. */
export function list(parts: readonly string[]): string {
  return parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

/** A number of things, their name in the plural unless there is one. The last word of the name gets the ending. */
export function count(things: number, noun: string): string {
  return things === 1 ? `1 ${noun}` : `${whole(things)} ${plural(noun)}`;
}

export function users(number: number): string {
  return count(number, 'user');
}

/** "once", "12 times" */
export function times(count: number): string {
  return count === 1 ? 'once' : `${whole(count)} times`;
}

/** "by 12 %" or "3.1-fold", for what grew by this ratio. */
export function growth(ratio: number): string {
  return ratio < 1.95 ? `by ${percent(ratio - 1)}` : `${number(ratio)}-fold`;
}

/** The text of a number that may be a lower bound, with "≥" before it where it is. */
export function atLeast(text: string, isLowerBound: boolean): string {
  return isLowerBound ? `≥${text}` : text;
}

function plural(noun: string): string {
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`;
  return noun + (/(s|x|z|ch|sh)$/.test(noun) ? 'es' : 's');
}

function isNumber(value: Maybe): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

function isPlain(size: number): boolean {
  return size >= PLAIN_MIN && size < PLAIN_END;
}

function inUnit(value: number, units: Units, least: string): string {
  const [factor, unit] = units.find(([factor]) => Math.abs(value) / factor >= UNIT_MIN) ?? [1, least];
  return `${number(value / factor)} ${unit}`;
}

/** Writes a size with at most this many significant digits. It has no decimals where the whole digits are more than that. */
function significantDigits(size: number, significant: 2 | 3, isGrouped: boolean): string {
  let decimals = POWERS.length - 1;
  while (decimals > 0 && Math.round(size * (POWERS[decimals] as number)) >= POWERS[significant]) decimals--;
  return decimal(Math.round(size * (POWERS[decimals] as number)), decimals, isGrouped);
}

/** `scaled` divided by a power of ten, without trailing zeros. */
function decimal(scaled: number, decimals: number, isGrouped: boolean): string {
  const digits = padded(scaled, decimals + 1);
  const [before, after] = [digits.slice(0, digits.length - decimals), digits.slice(digits.length - decimals).replace(/0+$/, '')];
  return (isGrouped ? grouped(before) : before) + (after === '' ? '' : `.${after}`);
}

function withPowerOfTen(size: number, decimals: 1 | 2): string {
  // The shortest digits that are this number, which every language has the same.
  const [mantissa, exponent] = size.toExponential().split('e') as [string, string];
  const scaled = Math.round(Number(mantissa) * POWERS[decimals]);
  const isNextPower = scaled >= (POWERS[decimals + 1] as number);
  return `${decimal(isNextPower ? scaled / 10 : scaled, decimals, false)}·10${superscript(Number(exponent) + (isNextPower ? 1 : 0))}`;
}

function superscript(exponent: number): string {
  return [...String(exponent)].map((letter) => (letter === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(letter)])).join('');
}

function padded(whole: number, digits: number): string {
  return String(whole).padStart(digits, '0');
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ',');
}

function signed(value: number, text: string): string {
  return value < 0 ? MINUS + text : text;
}

function cut(text: string): [string, string | undefined] {
  const blank = text.indexOf(' ');
  return blank < 0 ? [text, undefined] : [text.slice(0, blank), text.slice(blank + 1)];
}
