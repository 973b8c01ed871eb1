import { svelte } from '@sveltejs/vite-plugin-svelte';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { defineConfig } from 'vitest/config';

/** The page of `whyso serve`: one file, whose script and style the server names by their digests. */
export default defineConfig({
  plugins: [svelte(), viteSingleFile()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    // The report's page lies there, too.
    emptyOutDir: false,
    reportCompressedSize: false,
    rolldownOptions: { input: 'serve.html' },
  },
});
