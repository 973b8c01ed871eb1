/** A run in `whyso serve`: windows, charts, notes, sets of charts. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ID, ServeSession, hostileNote, shown } from './session.ts';

let session: ServeSession;

beforeAll(async () => {
  session = await ServeSession.start([ID], hostileNote);
});

afterAll(() => session?.stop());

afterEach(() => session.closePages());

describe('a run', () => {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [2560, 'light'], [2560, 'dark']] as const) {
    it(`is drawn at ${width} pixels, ${scheme}, without a complaint`, async () => {
      const { page, complaints } = await session.runPage('', width, scheme);
      expect(await page.locator('.chart canvas').count()).toBeGreaterThan(3);
      expect(await page.locator('h2', { hasText: 'Throughput and latency' }).count()).toBe(1);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(wide).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    });
  }

  it('applies a dragged window to charts and tables, and to the address', async () => {
    const { page, complaints } = await session.runPage();
    expect(await shown(page)).toBe('the whole run');
    const over = page.locator('.chart .u-over').first();
    await over.scrollIntoViewIfNeeded();
    const box = (await over.boundingBox()) as { x: number; y: number; width: number; height: number };
    const tables = page.waitForResponse((response) => response.url().includes('/tables?'));
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 50, { steps: 5 });
    await page.mouse.up();
    expect((await tables).status()).toBe(200);
    expect(await shown(page)).toMatch(/^\d+:\d\d\.\d to \d+:\d\d\.\d$/);
    await page.waitForURL(/from=.*to=/);
    const window_ = await shown(page);
    const again = await session.runPage(new URL(page.url()).search);
    expect(await shown(again.page)).toBe(window_);
    await page.locator('.window button', { hasText: 'all' }).click();
    expect(await shown(page)).toBe('the whole run');
    expect(complaints).toEqual([]);
  });

  it('shows only a level, by its button', async () => {
    const { page } = await session.runPage();
    await page.locator('.window button', { hasText: '4' }).first().click();
    expect(await shown(page)).toBe('the level of 4 users');
    await page.waitForURL(/level=/);
  });

  it('finds a series by typing, and draws it as a rate, raw and per transaction', async () => {
    const { page, complaints } = await session.runPage();
    await page.keyboard.press('/');
    await page.keyboard.type('questions');
    await page.keyboard.press('Enter');
    const chart = page.locator('.chart').first();
    await chart.locator('h3', { hasText: 'Questions' }).waitFor();
    for (const mode of ['per transaction', 'raw', 'rate']) {
      const read = page.waitForResponse((response) => response.url().includes('/series?'));
      await chart.getByRole('button', { name: mode, exact: true }).click();
      expect((await read).status()).toBe(200);
    }
    await page.locator('.chart .legend b').first().waitFor();
    expect(complaints).toEqual([]);
  });

  it('keeps all charts in step, by mouse and by keyboard', async () => {
    const { page } = await session.runPage();
    const plot = page.locator('.plot').first();
    await plot.scrollIntoViewIfNeeded();
    await plot.focus();
    await page.keyboard.press('+');
    await page.keyboard.press('ArrowRight');
    expect(await shown(page)).not.toBe('the whole run');
    await page.keyboard.press('0');
    expect(await shown(page)).toBe('the whole run');
    const box = (await plot.boundingBox()) as { x: number; y: number; width: number; height: number };
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.waitForFunction(() => [...document.querySelectorAll('.u-cursor-x')].filter((line) => (line as HTMLElement).style.transform !== '').length > 1);
  });

  it('applies a set of charts that ships, and keeps one of the reader’s own', async () => {
    const { page, complaints } = await session.runPage();
    await page.locator('.bookmarks summary').click();
    await page.getByRole('button', { name: 'InnoDB redo log' }).click();
    expect(await page.locator('.chart h3').first().textContent()).toBe('Redo written');
    await page.locator('.bookmarks summary').click();
    await page.getByLabel('name of the set of charts').fill('my <b>set</b>');
    await page.keyboard.press('Enter');
    await page.locator('.bookmarks [role=status]').waitFor();
    expect(await page.locator('.bookmarks li').first().textContent()).toContain('my <b>set</b>');
    expect(complaints).toEqual([]);
  });

  it('draws a set that means every host', async () => {
    const { page, complaints } = await session.runPage();
    await page.locator('.bookmarks summary').click();
    const set = 'name = "Every CPU"\n[[chart]]\ntitle = "CPU of all"\nseries = [{ host = "*", source = "cpu", metric = "user_ns", instance = "all" }]\n';
    await page.locator('.bookmarks input[type=file]').setInputFiles({ name: 'cpu.toml', mimeType: 'text/plain', buffer: Buffer.from(set) });
    await page.getByRole('button', { name: /^Every CPU/ }).click();
    const chart = page.locator('.chart', { has: page.getByRole('heading', { name: 'CPU of all' }) });
    await chart.locator('.legend b').waitFor();
    expect(await chart.locator('.legend b').textContent()).toContain('CPUs');
    expect(complaints).toEqual([]);
  });

  it('takes a note at the pointer', async () => {
    const { page } = await session.runPage();
    await page.locator('#explorer h2').click();
    await page.keyboard.press('n');
    await page.keyboard.type('switched <i>something</i>');
    await page.keyboard.press('Enter');
    await page.locator('.events summary').click();
    await page.locator('.events td', { hasText: 'switched <i>something</i>' }).waitFor();
  });

  it('changes a note and removes it', async () => {
    const { page, complaints } = await session.runPage();
    await page.locator('#explorer h2').click();
    await page.keyboard.press('n');
    await page.keyboard.type('a note with a mistaek');
    await page.keyboard.press('Enter');
    await page.locator('.events summary').click();
    const note = page.locator('.events tr', { hasText: 'mistaek' });
    await note.getByRole('button', { name: 'edit the note' }).click();
    await note.getByLabel('text of the note').fill('a note <u>without</u> one');
    await page.keyboard.press('Enter');
    const changed = page.locator('.events tr', { hasText: 'a note <u>without</u> one' });
    await changed.getByRole('button', { name: 'remove the note' }).click();
    await changed.getByRole('button', { name: 'keep' }).click();
    await changed.getByRole('button', { name: 'remove the note' }).click();
    await changed.getByRole('button', { name: 'remove', exact: true }).click();
    await expect.poll(() => page.locator('.events tr', { hasText: 'a note' }).count()).toBe(0);
    await page.reload();
    await page.locator('.events summary').click();
    expect(await page.locator('.events tr', { hasText: 'mistaek' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('is named and tagged, and a tag that can be none is refused', async () => {
    const { page, complaints } = await session.runPage();
    const labels = page.getByRole('group', { name: 'name and tags of this run' });
    await labels.getByRole('button', { name: 'name and tags…' }).click();
    await labels.getByLabel('name').fill('before <b>the</b> index');
    await labels.getByLabel('tags').fill('shop, "x"');
    await page.keyboard.press('Enter');
    await labels.getByRole('alert').waitFor();
    expect(await labels.getByRole('alert').textContent()).toContain('is no tag');
    await labels.getByLabel('tags').fill('shop, a/b');
    await page.keyboard.press('Enter');
    await labels.getByText('before <b>the</b> index').waitFor();
    await labels.getByRole('button', { name: 'remove the tag a/b' }).click();
    await expect.poll(() => labels.locator('.tag').allTextContents()).toEqual(['shop×']);
    await page.reload();
    await expect.poll(() => labels.locator('.tag').allTextContents()).toEqual(['shop×']);
    await labels.getByRole('link', { name: 'shop' }).click();
    await page.locator('td .name', { hasText: 'before <b>the</b> index' }).waitFor();
    expect(new URL(page.url()).searchParams.get('tag')).toBe('shop');
    expect(complaints.filter((complaint) => !complaint.includes('status of 400'))).toEqual([]);
  });

  it('opens at the tab that its address names, and keeps it while the window changes', async () => {
    const { page, complaints } = await session.runPage('#statements');
    await page.getByRole('tab', { name: 'Statements', selected: true }).waitFor();
    await page.locator('.window button', { hasText: '4' }).first().click();
    await page.waitForURL(/level=.*#statements$/);
    // The search for a series opens the tab that has it.
    await page.keyboard.press('/');
    await page.keyboard.type('questions');
    expect(await page.getByRole('tab', { selected: true }).textContent()).toBe('Over time');
    expect(complaints).toEqual([]);
  });

  it('says that a run is not there', async () => {
    const { page } = await session.at('/runs/..%2f..%2fetc');
    await page.locator('[role=alert]').waitFor();
    expect(await page.locator('[role=alert]').textContent()).toContain('there is no such run');
  });
});
