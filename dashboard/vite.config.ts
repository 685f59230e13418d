/** Builds the dashboard into `dist/`, compressed; `vite` serves it during development. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vite';
import { DASHBOARD, hashOfSources, SOURCES_MARK } from '../src/http/ui/background-build.ts';
import { compressTexts } from '../toolchain/compress.ts';
import { licenses } from '../toolchain/licenses.ts';
import { service } from './dev-service.ts';

export default defineConfig({
  base: '/ui/',
  // The service's content security policy forbids inlined scripts and fonts.
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
    // Every file of Mantine has `use client`, which only matters to server-side rendering.
    rolldownOptions: {
      checks: { bundlerTimings: false },
      onLog: (level, log, next) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && next(level, log),
    },
  },
  // A service in the same clone may build at the same time.
  server: { watch: { ignored: ['**/.build/**', '**/dist/**'] } },
  plugins: [compressed(), licenses(), marked(), service()],
});

/** Writes the hash of the sources beside the build: `flowhook serve` rebuilds if it differs. */
function marked(): Plugin {
  let hash = '';
  return {
    name: 'flowhook:marked',
    apply: 'build',
    async buildStart() {
      hash = await hashOfSources(join(import.meta.dirname, '..'), DASHBOARD.inputs);
    },
    writeBundle({ dir = 'dist' }) {
      writeFileSync(join(dir, SOURCES_MARK), `${hash}\n`);
    },
  };
}

/** Compresses the files in `writeBundle`, when they have their final names. Prints the size of the script of the first visit. */
function compressed(): Plugin {
  return {
    name: 'flowhook:compressed',
    apply: 'build',
    writeBundle({ dir = 'dist' }) {
      const html = readFileSync(join(dir, 'index.html'), 'utf8');
      const bytes = [...compressTexts(dir)]
        .filter(([name]) => name.endsWith('.js') && html.includes(`/ui/${name}`))
        .reduce((sum, [, size]) => sum + size, 0);
      const kB = Math.round(bytes / 1_000);
      console.log(`dashboard/dist: the first visit loads ${kB} kB of script (br), of at most 300`);
    },
  };
}
