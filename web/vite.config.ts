import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { defineConfig } from 'vitest/config';

/**
 * Turns the inlined module into a plain script at its marker, before the sample blocks. A module would wait until
 * the whole file is parsed; a plain script draws the page while megabytes of samples are still to come.
 */
function scriptBeforeBlocks(): Plugin {
  const inlined = /<script type="module"[^>]*>([\s\S]*?)<\/script>/;
  return {
    name: 'whyso-script-before-blocks',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const page = bundle['report.html'];
        if (page?.type !== 'asset') throw new Error('the build made no report.html');
        const html = String(page.source);
        const script = inlined.exec(html);
        if (!script?.[1]) throw new Error('the page holds no inlined script');
        page.source = html
          .replace(script[0], () => '')
          .replace('<!--whyso:script-->', () => `<script>${script[1]}</script>`);
      },
    },
  };
}

export default defineConfig({
  plugins: [svelte(), viteSingleFile(), scriptBeforeBlocks()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    reportCompressedSize: false,
    rolldownOptions: { input: 'report.html', output: { format: 'iife' } },
  },
  test: { include: ['tests/unit/**/*.test.ts'], environment: 'node' },
});
