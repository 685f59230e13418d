/** The image and the compose files refer to existing files and settings, and the service writes only where it may. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config/settings.ts';
import { environmentName } from '../../src/config/sources.ts';
import { startService } from '../support/service.ts';

const root = join(import.meta.dirname, '../..');
const read = (name: string) => readFile(join(root, name), 'utf8');
const VARIABLES = SETTINGS.map(({ name }) => environmentName(name));
const COMPOSE_FILES = ['compose.yaml', 'docs/operate/compose-postgres.yaml'];

/** The instructions of the Dockerfile, each on one line. */
const instructions = (await read('Dockerfile'))
  .replace(/\\\n/g, '')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line));

/** The settings that a text mentions. */
const named = (text: string) => [...new Set(text.match(/\bFLOWHOOK_[A-Z_]+/g))];

interface Service {
  image: string;
  ports?: string[];
  volumes?: string[];
  environment?: Record<string, string>;
  read_only?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
}

async function servicesOf(file: string): Promise<Service[]> {
  const compose = parse(await read(file), { merge: true }) as { services: Record<string, Service> };
  return Object.values(compose.services).filter(({ image }) => image === 'flowhook');
}

test('the Dockerfile copies existing paths, and excludes what must not be in an image', async () => {
  const copied = instructions
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
    .flatMap((line) => line.split(/\s+/).slice(1, -1));
  assert.ok(copied.length > 4);
  for (const path of copied) assert.ok(existsSync(join(root, path)), `${path} is copied, but does not exist`);
  const ignored = (await read('.dockerignore')).split('\n');
  for (const line of ['.git', '.env', 'data', '**/node_modules', '**/dist'])
    assert.ok(ignored.includes(line), line);
});

test('the image and the compose files use existing settings', async () => {
  for (const file of ['Dockerfile', ...COMPOSE_FILES]) {
    const unknown = named(await read(file)).filter((name) => !VARIABLES.includes(name));
    assert.deepEqual(unknown, [], file);
  }
  for (const variable of ['FLOWHOOK_HOST=0.0.0.0', 'FLOWHOOK_PORT=8080', 'FLOWHOOK_DATA=/data']) {
    assert.ok(
      instructions.some((line) => line.startsWith('ENV ') && line.includes(variable)),
      variable,
    );
  }
});

test('in every compose file the service has only the privileges that it needs', async () => {
  for (const file of COMPOSE_FILES) {
    const services = await servicesOf(file);
    assert.ok(services.length > 0, file);
    for (const service of services) {
      assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']], file);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], file);
      assert.ok(service.tmpfs?.[0]?.startsWith('/tmp:'), file);
      // A read-only directory, a volume for the data, and ports that only this machine can reach.
      assert.equal(service.volumes?.[0], '.:/flowhook:ro', file);
      assert.match(service.volumes?.[1] ?? '', /^data[-\d]*:\/data$/, file);
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:\d+:8080$/, file);
    }
  }
});

test('systemd accepts the unit', async (t) => {
  const unit = join(root, 'templates', 'flowhook.service');
  assert.deepEqual(
    named(await readFile(unit, 'utf8')).filter(
      (name) => !VARIABLES.includes(name) && !/_SECRET__/.test(name),
    ),
    [],
  );
  const verified = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' });
  if (verified.error !== undefined) {
    t.skip('systemd is not installed');
    return;
  }
  // The output may contain warnings about other units.
  assert.doesNotMatch(verified.stderr, /flowhook/);
});

test('the health check of the image succeeds only if the service responds', async (t) => {
  const check = instructions.find((line) => line.startsWith('HEALTHCHECK '));
  const [command = '', ...args] = JSON.parse(check?.replace(/^.*\bCMD /, '') ?? '[]') as string[];
  assert.equal(command, 'node');
  const service = await startService();
  t.after(() => service.stop());
  const healthy = async () => {
    const env = { FLOWHOOK_PORT: new URL(service.url).port };
    const [code] = await once(spawn(process.execPath, args, { env, stdio: 'ignore' }), 'exit');
    return code;
  };
  assert.equal(await healthy(), 0);
  await service.store.close();
  assert.equal(await healthy(), 1);
});

test('runs a job, caches a response and makes a backup on a read-only file system', async (t) => {
  if (!mayMount()) {
    t.skip('this user may not mount');
    return;
  }
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-image-'));
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  await mkdir(join(directory, 'data'));
  await mkdir(join(directory, 'tmp'));
  await writeFile(
    join(directory, 'workflows', 'default', 'module.mts'),
    "import { writeFileSync } from 'node:fs';\n" +
      'export default async function* () {\n' +
      `  try { writeFileSync(${JSON.stringify(join(directory, 'elsewhere'))}, ''); yield { id: 'written' }; }\n` +
      '  catch (error) { yield { id: (error as { code: string }).code }; }\n' +
      '}\n',
  );
  const service = await startReadOnly(directory);
  try {
    await runAndReadTwice(service.url);
    const env = { PATH: process.env.PATH ?? '', FLOWHOOK_DATA: join(directory, 'data') };
    execFileSync(process.execPath, [join(root, 'bin/flowhook.js'), 'backup', 'create', '--quiet'], { env });
  } finally {
    await service.stop();
    await rm(directory, { recursive: true, force: true });
  }
});

async function runAndReadTwice(url: string): Promise<void> {
  const headers = { 'x-api-key': KEY };
  const queued = await fetch(`${url}/v1/workflows/module/queue`, { method: 'POST', headers });
  const log = `${url}/v1/jobs/${queued.headers.get('x-job-id')}/logs`;
  // The stream ends with the job.
  await (await fetch(log, { headers: { ...headers, accept: 'text/event-stream' } })).text();
  for (const _ of ['writes the cached body', 'reads the cached body']) {
    const data = await fetch(`${url}/v1/workflows/module/data`, { headers });
    assert.deepEqual(await data.json(), [{ id: 'EROFS' }]);
  }
}

const KEY = 'key-of-the-read-only-service';

/** Whether this user may mount file systems: in containers this is often not allowed. */
function mayMount(): boolean {
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', 'mount --make-rprivate / && mount -o remount,bind,ro /'], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}

/** Starts a service that can write only to `data` and `tmp` in a directory. */
async function startReadOnly(directory: string): Promise<{ url: string; stop(): Promise<void> }> {
  const script =
    // The directory may be on a different file system. Bind mounts from it inherit that it is read-only.
    'mount --make-rprivate / && mount --bind "$PLACE" "$PLACE" && mount -o remount,bind,ro "$PLACE" && ' +
    'for one in data tmp; do mount --bind "$PLACE/$one" "$PLACE/$one" && mount -o remount,bind,rw "$PLACE/$one"; done && ' +
    'mount -o remount,bind,ro / && ! touch "$PLACE/x" 2>/dev/null && exec "$@"';
  const child: ChildProcess = spawn(
    'unshare',
    ['-m', 'sh', '-c', script, 'sh', process.execPath, join(root, 'bin/flowhook.js'), 'serve'],
    {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH ?? '',
        PLACE: directory,
        TMPDIR: join(directory, 'tmp'),
        FLOWHOOK_DATA: join(directory, 'data'),
        FLOWHOOK_PORT: '0',
        FLOWHOOK_DASHBOARD: 'off',
        FLOWHOOK_BOOTSTRAP_KEY: KEY,
      },
    },
  );
  const exited = once(child, 'exit');
  const lines: string[] = [];
  const { stdout, stderr } = child;
  assert.ok(stdout !== null && stderr !== null);
  createInterface({ input: stderr }).on('line', (line) => lines.push(line));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: stdout }).on('line', (line) => {
      lines.push(line);
      const found = /^flowhook listening on (\S+)$/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error(`The service has ended:\n${lines.join('\n')}`)));
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
