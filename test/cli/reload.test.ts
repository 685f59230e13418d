/** `flowhook serve` reloads its workflow files on SIGHUP. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startServerProcess } from '../support/server-process.ts';

const KEY = 'key-of-the-reloading-service';

test('SIGHUP applies new files, and a broken file leaves the last valid definition', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-reload-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const workflows = join(directory, 'workflows');
  await mkdir(join(workflows, 'default'), { recursive: true });
  await writeFile(join(workflows, 'default', 'first.yaml'), 'source: { type: push }\nname: First\n');
  const server = await startServerProcess({
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: workflows,
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
  });
  t.after(() => server.kill());
  const nameOf = async (id: string) => {
    const answer = await fetch(`${server.url}/v1/workflows/${id}`, { headers: { 'x-api-key': KEY } });
    return ((await answer.json()) as { name?: string }).name;
  };
  const reload = async () => {
    const lines = createInterface({ input: server.process.stderr as NodeJS.ReadableStream });
    const reloaded = new Promise<void>((resolve) => {
      lines.on('line', (line) => line.includes('reloaded') && resolve());
    });
    server.process.kill('SIGHUP');
    await reloaded;
    lines.close();
  };

  await writeFile(join(workflows, 'default', 'second.yaml'), 'source: { type: push }\nname: Second\n');
  assert.equal(await nameOf('second'), undefined);
  await reload();
  assert.equal(await nameOf('second'), 'Second');
  await writeFile(join(workflows, 'default', 'first.yaml'), 'source: { type: psh }\n');
  await reload();
  assert.equal(await nameOf('first'), 'First');
  const ended = once(server.process, 'exit');
  server.process.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
