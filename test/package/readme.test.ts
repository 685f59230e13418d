/**
 * Runs the commands of README.md as a new user would paste them: in a clean clone, with the machine's own Node and npm,
 * an empty home directory, an empty package cache, and the ports in the page.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { newcomerIn, terminal } from '../support/cli/newcomer.ts';
import { ROOT, SNIPPETS } from '../support/docs/snippets.ts';

/** The ports in the page. */
const PORTS = [8080, 9000];
/** The line that the reader completes with the key printed by the server. */
const KEY_LINE = /^KEY=.*$/m;

test('the commands of README.md work as pasted into a clean clone', { timeout: 300_000 }, async (t) => {
  if (!existsSync(join(ROOT, '.git'))) return t.skip('not a clone');
  for (const port of PORTS) {
    if (!(await isFree(port))) return t.skip(`port ${port} is in use`);
  }
  const home = mkdtempSync(join(tmpdir(), 'flowhook-newcomer-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const clone = join(home, 'flowhook');
  execFileSync('git', ['clone', '--quiet', ROOT, clone]);
  const environment = newcomerIn(home);
  const blocks = SNIPPETS.filter(({ page, language }) => page === 'README.md' && language === 'sh');
  assert.equal(
    blocks.length,
    3,
    'there are blocks to start the server, to set KEY, and for the first five minutes',
  );
  const [start = '', setKey = '', firstMinutes = ''] = blocks.map(({ text }) => text);
  assert.match(setKey, KEY_LINE);

  const first = terminal(t, start, { directory: clone, environment });
  let printedFirst = '';
  first.process.stdout?.on('data', (text: string) => {
    printedFirst += text;
  });
  await first.says(/flowhook listening on http:\/\/127\.0\.0\.1:8080\n/, 'stdout');
  const key = /^key: (\S+)$/m.exec(printedFirst)?.[1] ?? '';
  assert.notEqual(key, '', printedFirst);
  const pasted = `set -e\n${setKey.replace(KEY_LINE, `KEY=${key}`)}\n${firstMinutes}\nwait`;
  const second = terminal(t, pasted, { directory: clone, environment });
  const { code, stdout, stderr } = await second.ended;
  const printed = stdout + stderr;
  assert.equal(code, 0, printed);
  for (const type of ['queued', 'started', 'data_change', 'finished']) {
    assert.match(printed, new RegExp(`workflow_${type}`), 'the receiver has printed the event');
  }

  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:8080/v1/${path}`, { headers: { 'x-api-key': key } });
    return response.json();
  };
  const people = (await get('workflows/package-authors/data')) as { id: string }[];
  assert.ok(people.length > 10, printed);
  assert.deepEqual(await get('integrations/webhooks/list'), { webhooks: [] }, 'all webhooks are removed');
  assert.equal(((await get('keys')) as { keys: unknown[] }).keys.length, 1, 'no second key was created');
  const untracked = execFileSync('git', ['status', '--porcelain'], { cwd: clone, encoding: 'utf8' });
  assert.equal(untracked, '', 'all files are removed');
  first.interrupt();
  const last = await first.ended;
  assert.match(last.stdout + last.stderr, /flowhook has stopped/);
});

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
