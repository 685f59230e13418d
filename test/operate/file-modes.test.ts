/** Only the service's own user can read its files, with any umask. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

const BIN = join(import.meta.dirname, '../..', 'bin', 'flowhook.js');

/** All paths in a directory, and the ones that other users can access. */
async function openToOthers(directory: string): Promise<{ seen: string[]; open: string[] }> {
  const names = await readdir(directory, { recursive: true });
  const seen: string[] = [];
  const open: string[] = [];
  for (const path of [directory, ...names.map((name) => join(directory, name))]) {
    // Temporary files may be gone already.
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    const name = relative(directory, path) || '.';
    seen.push(name);
    if ((found.mode & 0o077) !== 0) open.push(`${name} ${(found.mode & 0o777).toString(8)}`);
  }
  return { seen, open };
}

/** A server and commands with umask 000. */
async function place(t: { after(end: () => Promise<void>): void }) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-modes-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const data = join(directory, 'data');
  const env = {
    PATH: process.env.PATH ?? '',
    FLOWHOOK_DATA: data,
    FLOWHOOK_PORT: '0',
    FLOWHOOK_DASHBOARD: 'off',
    FLOWHOOK_BOOTSTRAP_KEY: 'a-key-of-the-file-modes-test',
    FLOWHOOK_LOG_FORMAT: 'json',
  };
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  await writeFile(join(directory, 'workflows', 'default', 'people.yaml'), 'source: { type: push }\n');
  const script = `umask 000; exec "${process.execPath}" "${BIN}" "$@"`;
  return {
    directory,
    data,
    run(...args: string[]) {
      const done = spawnSync('sh', ['-c', script, 'sh', ...args], { cwd: directory, env, encoding: 'utf8' });
      assert.equal(done.status, 0, done.stderr);
      return done;
    },
    async serve(use: (url: string) => Promise<void>): Promise<string> {
      const child = spawn('sh', ['-c', script, 'sh', 'serve'], { cwd: directory, env });
      const exited = once(child, 'close');
      let output = '';
      child.stderr.on('data', (part) => {
        output += part;
      });
      try {
        const url = await new Promise<string>((resolve, reject) => {
          createInterface({ input: child.stdout }).on('line', (line) => {
            const [, found] = /listening on (\S+)$/.exec(line) ?? [];
            if (found !== undefined) resolve(found);
          });
          child.once('exit', () => reject(new Error(`The server ended: ${output}`)));
        });
        await use(url);
      } finally {
        child.kill('SIGTERM');
        await exited;
      }
      return output;
    },
  };
}

test('no other user can read the database, keys, backups and cached bodies', async (t) => {
  const { data, run, serve } = await place(t);
  const output = await serve(async (url) => {
    const headers = { 'x-api-key': 'a-key-of-the-file-modes-test', 'content-type': 'application/json' };
    const records = Array.from({ length: 4_000 }, (_, id) => ({ id: String(id), name: 'x'.repeat(100) }));
    const push = { method: 'POST', headers, body: JSON.stringify(records) };
    assert.equal((await fetch(`${url}/v1/workflows/people/push`, push)).status, 200);
    assert.equal(
      (await (await fetch(`${url}/v1/workflows/people/data`, { headers })).text()).length > 0,
      true,
    );
    run('backup', 'create');
    const { seen, open } = await openToOthers(data);
    assert.deepEqual(open, []);
    for (const name of ['flowhook.db', 'flowhook.db-wal', 'owner.db', 'encryption.key', 'backups']) {
      assert.ok(seen.includes(name), `${name} among ${seen}`);
    }
    assert.ok(
      seen.some((name) => /^backups\/.*\.db$/.test(name)),
      String(seen),
    );
    assert.ok(
      seen.some((name) => name.startsWith('representations/')),
      String(seen),
    );
  });
  assert.doesNotMatch(output, /open_to_others/);

  const [name = ''] = (await readdir(join(data, 'backups'))).filter((file) => file.endsWith('.db'));
  run('backup', 'restore', name, '--force');
  assert.deepEqual((await openToOthers(data)).open, []);
  const [line] = JSON.parse(run('audit', 'list', '--limit', '1', '--json').stdout);
  assert.deepEqual(
    [line.action, line.team, line.target],
    ['backups.restore', null, { kind: 'backup', id: name }],
  );
  assert.equal(line.actor.kind, 'command');
});

test('keeps the mode of a data directory that others can read, and warns at the start', async (t) => {
  const { data, serve } = await place(t);
  await mkdir(data);
  await chmod(data, 0o755);
  const output = await serve(async () => {
    // Other users can see only the names of files.
    assert.deepEqual((await openToOthers(data)).open, ['. 755']);
  });
  assert.match(output, /directory\.open_to_others/);
});
