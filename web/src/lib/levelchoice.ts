/** Which of the tables that there are level by level is shown. Pure. */

/** Its place: that of the level that is shown alone, else of the one that the explanation is about, else the last. */
export function placeOfLevel(tables: { level: number | null }[], shown: number | null, about: number | null | undefined): number {
  const place = (index: number | null | undefined) => (index == null ? -1 : tables.findIndex((table) => table.level === index));
  const [shownPlace, aboutPlace] = [place(shown), place(about)];
  return shownPlace >= 0 ? shownPlace : aboutPlace >= 0 ? aboutPlace : tables.length - 1;
}
