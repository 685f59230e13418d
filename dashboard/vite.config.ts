/** Builds the dashboard into `dist/`, beside each file its compressed forms; `vite` serves it while one works on it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';
import { DASHBOARD_INPUTS, hashOfSources, SOURCES_MARK } from '../src/http/ui/sources.ts';
import { service } from './dev-service.ts';

export default defineConfig({
  base: '/ui/',
  // The service sends a policy without inline scripts and data: fonts; nothing may be folded into another file.
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
    // `use client` in every file of Mantine: for servers that render, which this one does not.
    rolldownOptions: {
      onLog: (level, log, next) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && next(level, log),
    },
  },
  // A service that runs in the same clone builds beside it.
  server: { watch: { ignored: ['**/.build/**', '**/dist/**'] } },
  plugins: [compressed(), marked(), service()],
});

/** Leaves beside what was built what it was built of: `flowhook serve` builds it again when that is not so any more. */
function marked(): Plugin {
  let hash = '';
  return {
    name: 'flowhook:marked',
    apply: 'build',
    async buildStart() {
      hash = await hashOfSources(join(import.meta.dirname, '..'), DASHBOARD_INPUTS);
    },
    writeBundle({ dir = 'dist' }) {
      writeFileSync(join(dir, SOURCES_MARK), `${hash}\n`);
    },
  };
}

/** In `writeBundle`, where files have their last names. Prints what the first look at the dashboard has to load. */
function compressed(): Plugin {
  return {
    name: 'flowhook:compressed',
    apply: 'build',
    writeBundle({ dir = 'dist' }) {
      const html = readFileSync(join(dir, 'index.html'), 'utf8');
      let firstScript = 0;
      for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const bytes = readFileSync(join(dir, name));
        const br = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
        writeFileSync(join(dir, `${name}.br`), br);
        writeFileSync(join(dir, `${name}.gz`), gzipSync(bytes, { level: 9 }));
        if (name.endsWith('.js') && html.includes(`/ui/${name}`)) firstScript += br.length;
      }
      this.info(`first load: ${Math.round(firstScript / 1_000)} kB of script (br), of at most 300`);
    },
  };
}
