import { defineConfig } from 'vitest/config';

/** The page in a real Chromium, over the report that REPORT_HTML names. */
export default defineConfig({
  test: { include: ['tests/browser/**/*.test.ts'], environment: 'node', testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
});
