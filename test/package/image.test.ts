/** The image is built from the Dockerfile, and its containers do what docs/operate/install.md says of `compose.yaml`. */
import assert from 'node:assert/strict';
import { chown, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { buildImage, type Mount, whyNotHere } from '../support/image.ts';

/** Any user of the machine that runs `flowhook init`. */
const OTHER_USER = 1234;
const NODE_USER = 1000;
const MAX_ADDED_BYTES = 10_000_000;

interface Compose {
  services: { flowhook: { read_only: boolean; tmpfs: string[]; volumes: string[]; cap_drop: string[] } };
}

test('the image is built, and its container is healthy, read-only and unprivileged', {
  skip: whyNotHere() ?? false,
  timeout: 400_000,
}, async (t) => {
  const image = await buildImage();
  t.after(() => image.remove());
  t.diagnostic(`the image adds ${image.addedBytes} bytes to its base image`);
  assert.ok(image.addedBytes <= MAX_ADDED_BYTES, `${image.addedBytes} bytes`);
  assert.equal(image.config.User, 'node');

  const directory = join(image.scratch, 'directory');
  await mkdir(directory);
  await chown(directory, OTHER_USER, OTHER_USER);
  const init = image.run({
    command: ['init', '/out'],
    user: OTHER_USER,
    mounts: [{ destination: '/out', source: directory, options: ['rw'] }],
  });
  const created = await init.ended;
  assert.equal(created.code, 0, created.stderr);

  // Docker gives a new volume the owner of the directory in the image.
  const data = join(image.scratch, 'data');
  await mkdir(data, { mode: 0o700 });
  await chown(data, NODE_USER, NODE_USER);
  const { flowhook } = (parse(await readFile(join(directory, 'compose.yaml'), 'utf8')) as Compose).services;
  const sources: Readonly<Record<string, string>> = { '.': directory, data };
  const mounts: Mount[] = [
    ...flowhook.tmpfs.map((line) => {
      const [destination = '', options = ''] = line.split(':');
      return { destination, options: options.split(',') };
    }),
    ...flowhook.volumes.map((line) => {
      const [source = '', destination = '', mode = 'rw'] = line.split(':');
      return { destination, source: sources[source] ?? '', options: [mode] };
    }),
  ];
  const start = () => image.run({ readOnly: flowhook.read_only, mounts });

  const container = start();
  await container.says(/^flowhook listening on http:\/\/0\.0\.0\.0:8080$/m, 'stdout');
  const [how, ...healthCheck] = image.config.Healthcheck.Test;
  assert.equal(how, 'CMD');
  assert.equal((await container.exec(healthCheck)).code, 0, 'healthy');
  const said = async (...command: string[]) => {
    const { code, stdout, stderr } = await container.exec(command);
    assert.equal(code, 0, `${command.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const status = (path: string, key = '') =>
    said(
      'node',
      '-e',
      'fetch(process.argv[1], { headers: { "x-api-key": process.argv[2] } }).then(({ status }) => console.log(status))',
      `http://127.0.0.1:8080${path}`,
      key,
    );
  const key = await said('flowhook', 'keys', 'create', '--team', 'default');
  assert.match(key, /^fh_/);
  assert.equal(await status('/v1/integrations/webhooks/list', key), '200');
  assert.equal(await status('/ui/'), '200');
  assert.equal(await status('/docs/guide/'), '200');
  await said('flowhook', 'run', 'hello', '--wait');
  await said('flowhook', 'backup', 'create');

  const user = await said('cat', '/proc/self/status');
  assert.match(user, /^Uid:\t1000\t1000/m);
  assert.match(user, /^CapEff:\t0+$/m);
  assert.equal(await said('cat', '/proc/1/comm'), 'tini');
  for (const path of ['/elsewhere', '/app/elsewhere', '/flowhook/elsewhere']) {
    assert.match((await container.exec(['touch', path])).stderr, /Read-only file system/);
  }

  const { code, stdout, stderr } = await container.stop();
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout + stderr, /flowhook has stopped/);
  const again = start();
  await again.says(/^flowhook listening on /m, 'stdout');
  const records = await again.exec(['flowhook', 'data', 'get', 'hello', '--json']);
  assert.equal(records.code, 0, 'the records are in the volume');
  assert.notDeepEqual(JSON.parse(records.stdout), []);
  assert.equal((await again.stop()).code, 0);
});
