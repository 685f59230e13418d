/**
 * Runs the tests of all integrations: of each project (a folder with a package.json), after installing it from its lock
 * file, and of the recipes. If tests fail, prints which, and exits with 1.
 *
 *     npm run test:integrations [zapier n8n recipes]
 *
 * `TEST_STATE` names a file that lists the integrations that have passed; they are skipped in the next run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
const INSTALL_WITHIN_MS = 10 * 60_000;
const TEST_WITHIN_MS = 15 * 60_000;
const { TEST_STATE: state, ...environment } = process.env;

const projects = readdirSync(HERE)
  .filter((name) => existsSync(join(HERE, name, 'package.json')))
  .sort();
const all = [...projects, 'recipes'];
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no integration ${unknown.join(', ')}. Choose from: ${all.join(', ')}\n`);
  process.exit(2);
}
const passed: string[] =
  state !== undefined && existsSync(state) ? JSON.parse(readFileSync(state, 'utf8')) : [];
const due = (asked.length > 0 ? asked : all).filter((name) => !passed.includes(name));

const failed: string[] = [];
for (const name of due) {
  const ok = await (name === 'recipes' ? testRecipes() : testProject(name));
  (ok ? passed : failed).push(name);
}
if (state !== undefined) writeFileSync(state, JSON.stringify(passed));
say(failed.length === 0 ? `all passed: ${due.join(', ')}` : `FAILED: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function testProject(name: string): Promise<boolean> {
  const directory = join(HERE, name);
  if (!isInstalled(directory)) {
    const since = performance.now();
    const { status, error, stdout, stderr } = spawnSync(
      'npm',
      ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
      {
        cwd: directory,
        encoding: 'utf8',
        timeout: INSTALL_WITHIN_MS,
      },
    );
    if (status !== 0) {
      process.stderr.write(`${stdout}${stderr}${error ?? ''}\n`);
      say(`${name}: npm ci failed`);
      return false;
    }
    say(`${name}: installed in ${seconds(since)}`);
  }
  return run(name, 'npm', ['test'], directory);
}

/** npm lists what it has installed in a file in `node_modules`. If that is older than the lock file, it is out of date. */
function isInstalled(directory: string): boolean {
  const at = (path: string) => statSync(join(directory, path), { throwIfNoEntry: false })?.mtimeMs;
  const installed = at('node_modules/.package-lock.json');
  return installed !== undefined && installed >= (at('package-lock.json') ?? Number.POSITIVE_INFINITY);
}

function testRecipes(): Promise<boolean> {
  const files = globSync('recipes/*/*.test.ts', { cwd: HERE }).sort();
  const options = ['--test', '--test-concurrency=2', '--test-timeout=120000'];
  return run('recipes', process.execPath, [...options, ...files], HERE);
}

/** Runs a command in its own process group, so that all of its processes can be killed if it takes too long. */
async function run(name: string, command: string, args: string[], directory: string): Promise<boolean> {
  say(`${name}: testing`);
  const since = performance.now();
  const child = spawn(command, args, { cwd: directory, env: environment, stdio: 'inherit', detached: true });
  const end = () => process.kill(-(child.pid as number), 'SIGKILL');
  const late = setTimeout(end, TEST_WITHIN_MS);
  const interrupted = () => {
    end();
    process.exit(130);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(late);
  process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  say(`${name}: ${code === 0 ? 'passed' : 'FAILED'} after ${seconds(since)}`);
  return code === 0;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

function say(text: string): void {
  process.stdout.write(`# integrations: ${text}\n`);
}
