/**
 * What README.md tells a newcomer to paste works as it stands: on a clean clone, with the machine's own Node and npm, an
 * empty home directory, an empty package cache, and the ports that the page names.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { listenTo, type Started } from '../support/cli/commands.ts';
import { ROOT, SNIPPETS } from '../support/docs/snippets.ts';

/** The ports that the page names. */
const PORTS = [8080, 9000];

test('the commands of README.md work as pasted into a clean clone', { timeout: 300_000 }, async (t) => {
  if (!existsSync(join(ROOT, '.git'))) return t.skip('not a clone');
  for (const port of PORTS) {
    if (!(await isFree(port))) return t.skip(`something else listens on port ${port}`);
  }
  const home = mkdtempSync(join(tmpdir(), 'flowhook-newcomer-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const clone = join(home, 'flowhook');
  execFileSync('git', ['clone', '--quiet', ROOT, clone]);
  // npm puts our own Node in front of the machine's.
  const path = (process.env.PATH ?? '').split(delimiter).filter((one) => !one.includes('node_modules'));
  const environment = { HOME: home, PATH: path.join(delimiter), npm_config_cache: join(home, 'cache') };
  const [start, firstMinutes, ...others] = SNIPPETS.filter(
    ({ page, language }) => page === 'README.md' && language === 'sh',
  );
  assert.ok(
    start && firstMinutes && others.length === 0,
    'one block starts it, one is the first five minutes',
  );

  const first = terminal(t, clone, environment, start.text);
  await first.says(/flowhook listening on http:\/\/127\.0\.0\.1:8080\n/, 'stdout');
  const second = terminal(t, clone, environment, `set -e\n${firstMinutes.text}\nwait`);
  const { code, stdout, stderr } = await second.ended;
  const printed = stdout + stderr;
  assert.equal(code, 0, printed);

  const people = JSON.parse(readFileSync(join(clone, 'people.json'), 'utf8')) as { id: string }[];
  assert.ok(people.length > 10, printed);
  for (const type of ['queued', 'started', 'data_change', 'finished']) {
    assert.match(printed, new RegExp(`workflow_${type}`), 'the receiver has printed it');
  }
  // Ctrl-C goes to all of the foreground.
  process.kill(-(first.process.pid ?? 0), 'SIGINT');
  const last = await first.ended;
  assert.match(last.stdout + last.stderr, /flowhook has stopped/);
});

/** A shell that was given these lines, in a process group of its own. */
function terminal(t: TestContext, directory: string, env: Record<string, string>, lines: string): Started {
  const child = spawn('bash', ['-c', lines], { cwd: directory, env, detached: true });
  t.after(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  return listenTo(child);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
