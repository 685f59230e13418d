/** Sources that do not run as the service's own user. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { definitionOf, site } from '../../../test/support/jobs/source-site.ts';
import { directoryOf, finish, start, TRIAL } from '../../../test/support/jobs/sources.ts';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { silentLogger } from '../../observe/log.ts';
import { startRun } from '../start.ts';
import { findRunAs, type RunAs, requireRunAs } from './environment.ts';
import { readModuleSettings } from './module.ts';

const USERS =
  'root:x:0:0:root:/root:/bin/sh\nada:x:1000:1001:Ada,,,:/home/ada:/bin/sh\nbare:x:1002:1002:::\ntoor:x:1003:0:::\n';

test('a user is found by name or number, and `uid:gid` is used as it is', () => {
  const ada = { uid: 1000, gid: 1001, user: 'ada', home: '/home/ada' };
  assert.deepEqual(findRunAs('ada', USERS), ada);
  assert.deepEqual(findRunAs('1000', USERS), ada);
  assert.deepEqual(findRunAs('1000:7', USERS), { ...ada, gid: 7 });
  assert.deepEqual(findRunAs('5000:5001', USERS), { uid: 5000, gid: 5001, user: '5000', home: undefined });
  assert.deepEqual(findRunAs('bare', USERS), { uid: 1002, gid: 1002, user: 'bare', home: undefined });
});

test('an unknown user, a number without a group, and root are refused with a reason', () => {
  for (const [text, sentence] of [
    ['eve', /^must be a user in \/etc\/passwd, or uid:gid$/],
    ['5000', /^must be uid:gid, because no user/],
    ['root', /^must not be root$/],
    ['0:5', /^must not be root$/],
    ['1000:0', /^must not have root's group$/],
    ['5000:00', /^must not have root's group$/],
    ['toor', /^must not have root's group$/],
    ['', /^must be a user/],
    ['ada:1001', /^must be a user/],
  ] as const) {
    const found = findRunAs(text, USERS);
    assert.match('mistake' in found ? found.mistake : 'found', sentence, text);
  }
});

const nobody = (): RunAs => {
  const found = findRunAs('nobody');
  return 'mistake' in found ? { uid: 65_534, gid: 65_534, user: 'nobody', home: undefined } : found;
};
const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : 'only root can run sources as another user';

test('a service that is not root cannot run sources as another user', () => {
  const module = JSON.stringify(new URL('./environment.ts', import.meta.url).href);
  const script = `import { requireRunAs } from ${module}; await requireRunAs(${JSON.stringify(nobody())}, '/');`;
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: {},
    ...(isRoot ? { uid: nobody().uid, gid: nobody().gid } : {}),
  });
  assert.match(stderr, /only a service that is started as root can run sources as another user/);
  assert.equal(status, 1);
});

test('the error names a workflows directory that this user may not enter', { skip }, async (t) => {
  const directory = await directoryOf(t, {});
  await chmod(directory, 0o700);
  await assert.rejects(requireRunAs(nobody(), directory), new RegExp(`may not enter or run ${directory}`));
  await chmod(directory, 0o755);
  await requireRunAs(nobody(), directory);
  await requireRunAs(undefined, '/nowhere');
});

/** A directory that everybody may read, with these files. */
async function openTo(t: TestContext, files: Record<string, string>): Promise<string> {
  const directory = await directoryOf(t, files);
  await chmod(directory, 0o755);
  return directory;
}

test('a command runs as this user, with its own files, and cannot read files of the service', {
  skip,
}, async (t) => {
  const workflowsDirectory = await openTo(t, {});
  const secret = await mkdtemp(join(tmpdir(), 'flowhook-of-the-service-'));
  t.after(() => rm(secret, { recursive: true }));
  await writeFile(join(secret, 'key'), 'the key');
  const script = String.raw`
    say() { printf '{"id":"%s","is":"%s"}\n' "$1" "$(tr -d '"' | tr '\n' ' ')"; }
    denied() { "$@" 2>&1 >/dev/null | grep -o denied; }
    cat | say stdin
    echo "$(id -u):$(id -g):$(id -G)" | say user
    echo "$HOME $USER" | say home
    cat "$FLOWHOOK_STATE" | say state
    cat "$FLOWHOOK_CONFIG" | say config
    stat -c %a "$TMPDIR" "$FLOWHOOK_STATE" | say modes
    { denied ls "$TMPDIR/.."; denied mv "$TMPDIR" "$TMPDIR.gone"; } | say around
    denied cat /proc/${process.pid}/environ | say environ
    denied cat ${secret}/key | say secret
    mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"
    echo '{"n":2}' > "$FLOWHOOK_STATE"`;
  const runAs = nobody();
  const run = await start(t, {
    command: ['sh', '-c', script],
    source: { config: { token: 'abc' } },
    state: '{"n":1}',
    runAs,
    jobId: 'job_runastest',
    workflowsDirectory,
  });
  const { lines, end } = await finish(run);
  assert.deepEqual(end, { ok: true, state: '{"n":2}' });
  const said = lines.map((line) => {
    const { id, is } = JSON.parse(line) as { id: string; is: string };
    return `${id}: ${is.trim()}`;
  });
  assert.deepEqual(said, [
    'stdin: {n:1}',
    `user: ${runAs.uid}:${runAs.gid}:${runAs.gid}`,
    `home: ${runAs.home} ${runAs.user}`,
    'state: {n:1}',
    'config: {token:abc}',
    'modes: 700 600',
    'around: denied denied',
    'environ: denied',
    'secret: denied',
  ]);
  const left = (await readdir(tmpdir())).filter((name) => name.includes('job_runastest'));
  assert.deepEqual(left, [], 'nothing is left of it');
});

test('modules and HTTP sources run as this user, and the settings of a module are read as this user', {
  skip,
}, async (t) => {
  const runAs = nobody();
  const workflowsDirectory = await openTo(t, {
    'acme/one.mts': `export const workflow = { name: String(process.getuid()) };
      export default async function* () { yield { id: process.getuid() }; }`,
  });
  await chmod(join(workflowsDirectory, 'acme'), 0o755);
  const file = join(workflowsDirectory, 'acme/one.mts');
  const reading = { directory: workflowsDirectory, runAs, log: silentLogger };
  const settings = await readModuleSettings([file], reading);
  assert.deepEqual(settings.get(file), { settings: { name: String(runAs.uid) } });
  const { lines, end } = await finish(await start(t, { workflowsDirectory, runAs }));
  assert.deepEqual([lines, end], [[`{"id":${runAs.uid}}`], { ok: true, state: undefined }]);

  const { url } = await site(t, { '/': [{ id: 1 }] });
  const log: string[] = [];
  const run = await startRun({
    ...TRIAL,
    runAs,
    definition: definitionOf({ source: { type: 'http', url: `${url}/` } }),
    fetchPolicy: parseAllowNetworks('loopback'),
    onLog: ({ text }) => log.push(text),
  });
  const { uid } = await stat(`/proc/${run.process.pid}`);
  assert.equal(uid, runAs.uid);
  const read = await finish(run);
  assert.deepEqual(read.lines, ['{"id":1}'], log.join('\n'));
});
