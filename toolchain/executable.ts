/**
 * Makes `dist-executable/flowhook`, a single executable for this platform: Node, with the files of the built package
 * inside (`npm run build`). It reads them in memory and never writes them to the disk.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FIRST_CODE, ROOT } from '../src/std/own-files.ts';
import { BUNDLES } from './licenses.ts';

const INTO = join(ROOT, 'dist-executable');
const EXECUTABLE = join(INTO, process.platform === 'win32' ? 'flowhook.exe' : 'flowhook');
/** The files that the program reads or imports, out of those in the package. */
const FILES = [
  ...['package.json', 'compose.yaml', 'bin/*.{js,cjs}', 'dist/*.cjs'],
  ...['dashboard/dist/**', 'site/dist/**', 'src/store/migrations/*.sql', 'templates/*'],
];

const found = globSync(FILES, { cwd: ROOT, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length));
const missing = BUNDLES.filter((bundle) => !found.some((file) => file.startsWith(`${bundle}/`)));
if (missing.length > 0) throw new Error(`Run \`npm run build\` first: ${missing.join(', ')} is missing`);

rmSync(INTO, { recursive: true, force: true });
mkdirSync(INTO);
const directory = mkdtempSync(join(tmpdir(), 'flowhook-executable-'));
try {
  const config = join(directory, 'config.json');
  const main = join(ROOT, 'toolchain', 'executable-main.cjs');
  writeFileSync(
    config,
    JSON.stringify({
      main,
      output: EXECUTABLE,
      disableExperimentalSEAWarning: true,
      assets: {
        [FIRST_CODE]: main,
        'start.js': join(ROOT, 'toolchain', 'executable-start.js'),
        ...Object.fromEntries(found.map((file) => [file, join(ROOT, file)])),
      },
    }),
  );
  execFileSync(process.execPath, ['--build-sea', config], { stdio: ['ignore', 'ignore', 'inherit'] });
} finally {
  rmSync(directory, { recursive: true });
}
chmodSync(EXECUTABLE, 0o755);
// macOS runs only signed programs, and adding files has invalidated the signature of Node.
if (process.platform === 'darwin') execFileSync('codesign', ['--force', '--sign', '-', EXECUTABLE]);
const licenses = [
  join(ROOT, 'LICENSE'),
  join(dirname(process.execPath), '..', 'LICENSE'),
  ...BUNDLES.map((bundle) => join(ROOT, bundle, 'LICENSES.txt')),
];
writeFileSync(join(INTO, 'LICENSES.txt'), licenses.map((file) => readFileSync(file, 'utf8')).join('\n'));
console.log(`${EXECUTABLE} (${(statSync(EXECUTABLE).size / 1e6).toFixed(1)} MB)`);
