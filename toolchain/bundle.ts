/**
 * Bundles the service into `dist/` for the package: one file for the commands, one for each thread and child process,
 * and the chunks that they share. Dependencies are included, so an installation has no other packages.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { PROGRAMS, type Program, ROOT } from '../src/std/own-files.ts';
import { lazyRequires } from './lazy-requires.ts';
import { licenses } from './licenses.ts';

const DIST = join(ROOT, 'dist');
const SOURCES = join(ROOT, 'src');
/** The bundler replaces `require` of a file that it bundles, but not a function that only has this name. */
const OWN_REQUIRE = 'const require = createRequire(import.meta.url);';

/** A process of these programs may be started before its run, and then loads its code before its run too. */
const PREPARED: readonly Program[] = ['http-harness', 'module-harness'];

const bundle = await rolldown({
  cwd: ROOT,
  input: {
    main: join(SOURCES, 'main.ts'),
    ...Object.fromEntries(Object.entries(PROGRAMS).map(([name, file]) => [name, join(SOURCES, file)])),
  },
  platform: 'node',
  checks: { bundlerTimings: false },
  // `pg` loads it only if it is installed.
  external: ['pg-native'],
  plugins: [
    {
      name: 'own-require',
      transform: (code, id) =>
        id.startsWith(SOURCES) && code.includes(OWN_REQUIRE) ? code.replace(OWN_REQUIRE, '') : null,
    },
    lazyRequires(PREPARED),
    licenses(),
  ],
});
rmSync(DIST, { recursive: true, force: true });
const { output } = await bundle.write({
  dir: DIST,
  // Node loads CommonJS faster: it links no modules, and does not evaluate every lazy part of a module of its own.
  format: 'cjs',
  strict: true,
  entryFileNames: '[name].cjs',
  chunkFileNames: '[name]-[hash].cjs',
  // Comments are a seventh of the code. Lines and names stay, so that a stack trace can be read.
  comments: false,
});
await bundle.close();
const bytes = output.reduce(
  (sum, file) => sum + Buffer.byteLength(file.type === 'chunk' ? file.code : file.source),
  0,
);
console.log(`dist: ${output.length} files, ${(bytes / 1e6).toFixed(1)} MB`);
