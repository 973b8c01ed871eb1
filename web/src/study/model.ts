/** The data of the page of a study: Rust's types, and how they are read. */

import type { StudyHead } from './generated.ts';

export type { ComparedHead as Comparison, Course, Curve, PlaceHead as Place, Point, Sheet, StudyHead } from './generated.ts';

const FORMAT = 1;

/** What the page holds, if it is that of a study. Throws for one of another version. */
export function studyOfPage(): StudyHead | null {
  const text = document.getElementById('whyso-study')?.textContent;
  if (text === null || text === undefined) return null;
  const head = JSON.parse(text) as StudyHead;
  if (head.format !== FORMAT) throw new Error(`This page holds data of format ${head.format}, and can show format ${FORMAT}.`);
  return head;
}
