import { describe, expect, it } from 'vitest';
import type { ProofHead } from '../../src/data/model.ts';
import { barOf, endsOf, measuredWords, predictedWords, scaleOf } from '../../src/lib/proofs.ts';

const PROOF: ProofHead = { cause: 'row-lock', verdict: 'confirmed', words: 'spread the rows', also: '', why: '', predicted: [2, 4], measured: [3.17, 2.77, 3.67] };

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

  it('have their interval next to them', () => {
    expect(measuredWords(PROOF)).toBe('×3.17 (2.77 to 3.67)');
    expect(predictedWords(PROOF)).toBe('predicted ×2 to ×4');
    const { measured: _measured, predicted: _predicted, ...untested } = PROOF;
    expect(measuredWords(untested)).toBe('');
    expect(barOf(untested, scaleOf([0.5, 8]), [0.5, 8]).measured).toBeUndefined();
  });
});
