import { describe, expect, it } from 'vitest';
import type { ProofHead } from '../../src/data/model.ts';
import { barOf, curveOf, endsOf, measuredWords, predictedWords, scaleOf } from '../../src/lib/proofs.ts';

const PROOF: ProofHead = { cause: 'row-lock', verdict: 'confirmed', words: 'spread the rows', also: '', why: '', predicted: [2, 4], measured: [3.17, 2.77, 3.67], slowed: [] };

describe('proofs', () => {
  it('are on one logarithmic scale', () => {
    const ends = endsOf([PROOF]);
    expect(ends).toEqual([0.5, 8]);
    const scale = scaleOf(ends);
    expect([scale(0.5), scale(2), scale(8)]).toEqual([0, 0.5, 1]);
    expect(scale(100)).toBe(1);
    const bar = barOf(PROOF, scale, ends);
    expect(bar.predicted).toEqual([0.5, 0.75]);
    expect(bar.measured?.[0]).toBeGreaterThan(0.5);
    expect(bar.ticks.map((tick) => tick.gain)).toEqual([0.5, 1, 2, 4, 8]);
  });

  it('widen the scale for a gain beyond it', () => {
    expect(endsOf([PROOF, { ...PROOF, measured: [84, 80, 88] }])).toEqual([0.5, 88]);
  });

  it('of a slowed server lie on a curve, which goes on to twice its speed', () => {
    const curve = curveOf({ ...PROOF, measured: [2, 1.9, 2.1], slowed: [[80, 0.8, 0.79, 0.81], [50, 0.5, 0.49, 0.51]] });
    expect(curve.points.map((point) => point.percent)).toEqual([80, 50]);
    expect(curve.points[1]?.x).toBe(1);
    expect(curve.points[1]!.low).toBeLessThan(curve.points[1]!.high);
    // All of it is work, so time is proportional to it: the extrapolated end is half the work and half the time.
    expect(curve.extrapolated[1]).toEqual({ x: 0, y: 0 });
    expect(curve.speeds.map(({ percent }) => percent)).toEqual([200, 100, 80, 50]);
  });

  it('have their interval next to them', () => {
    expect(measuredWords(PROOF)).toBe('×3.17 (2.77 to 3.67)');
    expect(predictedWords(PROOF)).toBe('predicted ×2 to ×4');
    const { measured: _measured, predicted: _predicted, ...untested } = PROOF;
    expect(measuredWords(untested)).toBe('');
    expect(barOf(untested, scaleOf([0.5, 8]), [0.5, 8]).measured).toBeUndefined();
  });
});
