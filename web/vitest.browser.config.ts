import { defineConfig } from 'vitest/config';

/** The page in a real Chromium, over the report that REPORT_HTML names. Two files at a time: each waits for its browser most of the time. */
export default defineConfig({
  test: { include: ['tests/browser/**/*.test.ts'], environment: 'node', testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 2 },
});
