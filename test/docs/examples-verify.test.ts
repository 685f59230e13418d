/**
 * The examples that verify signatures, each tested with the same messages if its language is installed.
 * `VERIFY_LANGUAGES=all` includes Go, which compiles its library first, for half a minute.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { mistakeIn, SeenIds } from '../../examples/verify/receiver.mts';
import { signatureHeaders } from '../../src/webhooks/sign.ts';
import vectors from '../support/webhooks/standard-webhooks.json' with { type: 'json' };

const EXAMPLES = join(import.meta.dirname, '../..', 'examples', 'verify');
const BODY = '{"type":"workflow_finished","workflowId":"people","name":"Zoë ☂"}\n';
const secret = randomBytes(32);
const { privateKey } = generateKeyPairSync('ed25519');
const others = { secrets: [randomBytes(32)], privateKey: generateKeyPairSync('ed25519').privateKey };

const x = createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '';
const WHSEC = `whsec_${secret.toString('base64')}`;
const WHPK = `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;

const built = mkdtempSync(join(tmpdir(), 'flowhook-verify-'));
after(() => rmSync(built, { recursive: true }));

interface Message {
  what: string;
  headers: Record<string, string>;
  body: string;
  /** The expected error; undefined if the message must be accepted. */
  refused?: RegExp;
}

let last = 0;
function sign(keys: Parameters<typeof signatureHeaders>[1], ageS = 0): Promise<Record<string, string>> {
  last += 1;
  const timestamp = Math.floor(Date.now() / 1000) - ageS;
  return signatureHeaders({ id: `evt_${last}`, timestamp, body: BODY }, keys);
}

/** Removes the signatures of other versions. */
function only(version: 'v1' | 'v1a', headers: Record<string, string>): Record<string, string> {
  const signatures = headers['webhook-signature']?.split(' ') ?? [];
  return {
    ...headers,
    'webhook-signature': signatures.filter((one) => one.startsWith(`${version},`)).join(' '),
  };
}

/** Messages for receivers with the secret. */
async function v1Messages(): Promise<Message[]> {
  const ours = { secrets: [secret], privateKey };
  const [other] = others.secrets as [Buffer];
  const mine = async (ageS?: number) => only('v1', await sign(ours, ageS));
  return [
    { what: 'signed with the secret', headers: await sign(ours), body: BODY },
    { what: 'almost too old', headers: await mine(290), body: BODY },
    {
      what: 'signed with the secret and the previous secret',
      headers: only('v1', await sign({ secrets: [other, secret], privateKey })),
      body: BODY,
    },
    {
      what: 'changed',
      headers: await mine(),
      body: BODY.replace('people', 'robots'),
      refused: /no signature/,
    },
    { what: 'cut short', headers: await mine(), body: BODY.trimEnd(), refused: /no signature/ },
    {
      what: 'with another id',
      headers: { ...(await mine()), 'webhook-id': 'evt_x' },
      body: BODY,
      refused: /no signature/,
    },
    { what: 'signed by others', headers: await sign(others), body: BODY, refused: /no signature/ },
    { what: 'too old', headers: await mine(310), body: BODY, refused: /the timestamp is too/ },
    { what: 'too new', headers: await mine(-310), body: BODY, refused: /the timestamp is too/ },
    {
      what: 'with a timestamp in words',
      headers: { ...(await mine()), 'webhook-timestamp': '1e9' },
      body: BODY,
      refused: /not a number of seconds/,
    },
    {
      what: 'with empty and unknown signatures',
      headers: { ...(await mine()), 'webhook-signature': 'v1, v2,AAAA v1 v1,*' },
      body: BODY,
      refused: /no signature/,
    },
  ];
}

async function v1aMessages(): Promise<Message[]> {
  const mine = async () => only('v1a', await sign({ secrets: [], privateKey }));
  return [
    { what: 'signed with the key of the team', headers: await mine(), body: BODY },
    { what: 'changed, with the key', headers: await mine(), body: `${BODY} `, refused: /no signature/ },
    {
      what: 'with the key of others',
      headers: only('v1a', await sign(others)),
      body: BODY,
      refused: /no signature/,
    },
    {
      what: 'with a short signature',
      headers: { ...(await mine()), 'webhook-signature': 'v1a,AAAA' },
      body: BODY,
      refused: /no signature/,
    },
  ];
}

function isInstalled(program: string, args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The receivers, each in its own process. */
for (const { language, program, version, file } of [
  { language: 'TypeScript', program: process.execPath, version: ['--version'], file: 'receiver.mts' },
  { language: 'Python', program: 'python3', version: ['--version'], file: 'receiver.py' },
]) {
  const skip = !isInstalled(program, version) && `${program} is not installed here`;
  test(`the receiver in ${language} accepts each signed message once, and refuses the others`, {
    skip,
  }, async (t) => {
    const child = spawn(program, [join(EXAMPLES, file), '--port', '0', '--secret', WHSEC, '--key', WHPK], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => stop(child));
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    const url = /http:\S+/.exec((await lines.next()).value ?? '')?.[0] ?? '';
    const post = async ({ headers, body }: Pick<Message, 'headers' | 'body'>) => {
      const response = await fetch(url, { method: 'POST', headers, body });
      await response.text();
      return { status: response.status, line: (await lines.next()).value };
    };
    for (const message of [...(await v1Messages()), ...(await v1aMessages())]) {
      const id = message.headers['webhook-id'];
      const { status, line } = await post(message);
      if (message.refused === undefined) {
        assert.deepEqual([status, line], [204, `verified ${id} workflow_finished people`], message.what);
        assert.deepEqual(await post(message), { status: 204, line: `again ${id}` }, message.what);
      } else {
        assert.equal(status, 401, message.what);
        assert.match(line ?? '', message.refused, message.what);
      }
    }
    const { status, line } = await post({ headers: {}, body: BODY });
    assert.deepEqual([status, line], [401, 'refused: a webhook- header is missing']);

    // A failed event does not count as done: the next attempt is processed.
    const headers = await signatureHeaders(
      { id: 'evt_broken', timestamp: Math.floor(Date.now() / 1000), body: 'no JSON' },
      { secrets: [secret], privateKey },
    );
    for (const attempt of [1, 2]) {
      const failed = await post({ headers, body: 'no JSON' });
      assert.equal(failed.status, 500, `attempt ${attempt}`);
      assert.match(failed.line ?? '', /^failed evt_broken/);
    }
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Functions to copy, run as programs with the headers in the environment and the body on standard input. */
for (const { language, program, version, prepare } of [
  {
    language: 'Go',
    program: 'go',
    version: ['version'],
    prepare() {
      const binary = join(built, 'verify-go');
      const env = {
        ...process.env,
        CGO_ENABLED: '0',
        GOFLAGS: '-mod=mod',
        GOTOOLCHAIN: 'local',
        GOPROXY: 'off',
      };
      execFileSync('go', ['build', '-o', binary, join(EXAMPLES, 'verify.go')], { env, cwd: built });
      return [binary];
    },
  },
  {
    language: 'Ruby',
    program: 'ruby',
    version: ['--version'],
    prepare: () => ['ruby', join(EXAMPLES, 'verify.rb')],
  },
  {
    language: 'PHP',
    program: 'php',
    version: ['--version'],
    prepare: () => ['php', join(EXAMPLES, 'verify.php')],
  },
  {
    language: 'Java',
    program: 'javac',
    version: ['-version'],
    prepare() {
      // For one small file, optimizing the compiler itself takes longer than it saves.
      const flags = ['-J-XX:+UseSerialGC', '-J-XX:TieredStopAtLevel=1'];
      execFileSync('javac', [...flags, '-encoding', 'UTF-8', '-d', built, join(EXAMPLES, 'Verify.java')]);
      return ['java', '-Xshare:auto', '-XX:TieredStopAtLevel=1', '-cp', built, 'Verify'];
    },
  },
  {
    language: 'shell',
    program: 'openssl',
    version: ['version'],
    prepare: () => ['sh', join(EXAMPLES, 'verify.sh')],
  },
]) {
  const isLeftOut = language === 'Go' && process.env.VERIFY_LANGUAGES !== 'all';
  const skip = isLeftOut
    ? 'npm run test:long includes it'
    : !isInstalled(program, version) && `${program} is not installed here`;
  test(`the function in ${language} accepts signed messages and refuses the others`, { skip }, async () => {
    const [command = '', ...args] = prepare();
    for (const message of await v1Messages()) {
      const printed = await run(command, args, message);
      if (message.refused === undefined) assert.equal(printed, 'verified 0', message.what);
      else {
        assert.match(printed, message.refused, message.what);
        assert.match(printed, /^refused: .* 1$/, message.what);
      }
    }
    const bare = await run(command, args, { headers: {}, body: BODY });
    assert.equal(bare, 'refused: a webhook- header is missing 1');
  });
}

/** Returns the output of the program and its exit code. */
async function run(
  command: string,
  args: string[],
  message: Pick<Message, 'headers' | 'body'>,
): Promise<string> {
  const child = spawn(command, args, {
    env: {
      ...process.env,
      WEBHOOK_SECRET: WHSEC,
      WEBHOOK_ID: message.headers['webhook-id'],
      WEBHOOK_TIMESTAMP: message.headers['webhook-timestamp'],
      WEBHOOK_SIGNATURE: message.headers['webhook-signature'],
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // A program that refuses the message before it reads the body closes the pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(message.body);
  let printed = '';
  child.stdout.on('data', (bytes) => {
    printed += bytes;
  });
  const [code] = await once(child, 'close');
  return `${printed.trim()} ${code}`;
}

test('the receiver in TypeScript accepts the published test vectors at their time', () => {
  const { message, v1, v1a } = vectors;
  const body = Buffer.from(message.body);
  const headers = (signature: string) => ({
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signature,
  });
  const keys = { secrets: [v1.secret], publicKeys: [v1a.publicKey] };
  for (const signature of [v1.signature, v1a.signature]) {
    assert.equal(mistakeIn({ headers: headers(signature), body }, keys, message.timestamp), undefined);
    assert.match(mistakeIn({ headers: headers(signature), body }, keys) ?? '', /too old/);
  }
});

test('the receiver in TypeScript remembers a limited number of ids', () => {
  const seen = new SeenIds();
  for (let n = 0; n <= SeenIds.MAX; n += 1) assert.ok(seen.take(`evt_${n}`));
  assert.ok(!seen.take(`evt_${SeenIds.MAX}`));
  assert.ok(seen.take('evt_0'), 'the oldest is forgotten');
});
