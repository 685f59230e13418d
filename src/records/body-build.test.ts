/** The making of a body: what readers get when they come late, go early, or when there can be no file. */
import assert from 'node:assert/strict';
import { writeSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BodyBuild, type BodyBuildInput } from './body-build.ts';
import type { BodyReader } from './body-reader.ts';

const CHUNKS = Array.from({ length: 50 }, (_, n) =>
  Buffer.alloc(20_000 + n, String.fromCharCode(97 + (n % 26))),
);
const WHOLE = Buffer.concat(CHUNKS);

async function* source(): AsyncGenerator<Uint8Array> {
  yield* CHUNKS;
}

/** What the body thread does, here: it writes what the source makes. */
function writing(made: () => AsyncIterable<Uint8Array>): BodyBuildInput['write'] {
  return async (fd, onLength, signal) => {
    let length = 0;
    for await (const bytes of made()) {
      if (signal.aborted) return 'not_written';
      length += writeSync(fd, bytes, 0, bytes.length, length);
      onLength(length);
      await new Promise(setImmediate);
    }
    return 'complete';
  };
}

async function start(t: TestContext, change: Partial<BodyBuildInput> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-build-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'body');
  const build = new BodyBuild({
    path,
    write: writing(change.source ?? source),
    source,
    admit: async () => true,
    before: async () => {},
    ...change,
  });
  return { path, build };
}

async function all(reader: BodyReader): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const memory = Buffer.alloc(33_333);
  try {
    for (let bytes = await reader.read(memory); bytes > 0; bytes = await reader.read(memory))
      chunks.push(Buffer.from(memory.subarray(0, bytes)));
    return Buffer.concat(chunks);
  } finally {
    reader.close();
  }
}

test('every reader gets the whole body, also one that reads after the build', async (t) => {
  const { path, build } = await start(t);
  const [early, stalled] = [build.read(), build.read()];
  assert.ok((await all(early)).equals(WHOLE));
  assert.equal(await build.finished, WHOLE.length);
  assert.ok((await all(stalled)).equals(WHOLE));
  assert.ok((await readFile(path)).equals(WHOLE));
});

test('completes when every reader has left', async (t) => {
  const { path, build } = await start(t);
  build.read().close();
  assert.equal(await build.finished, WHOLE.length);
  assert.ok((await readFile(path)).equals(WHOLE));
});

test('readers continue from a source of their own when the file may not grow', async (t) => {
  let room = 10;
  const { build } = await start(t, { admit: async () => room-- > 0 });
  const [one, stalled, gone] = [build.read(), build.read(), build.read()];
  gone.close();
  assert.ok((await all(one)).equals(WHOLE));
  assert.equal(await build.finished, undefined);
  assert.equal(build.joinable, false);
  assert.ok((await all(stalled)).equals(WHOLE));
});

test('a file that was given up is closed at once, although readers are left', async (t) => {
  let room = 10;
  const { path, build } = await start(t, { admit: async () => room-- > 0 });
  const stalled = build.read();
  assert.equal(await build.finished, undefined);
  await new Promise(setImmediate);
  const open = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(join('/proc/self/fd', fd)).catch(() => '')),
  );
  assert.ok(open.every((link) => !link.startsWith(path)));
  assert.ok((await all(stalled)).equals(WHOLE));
});

test('readers continue from a source of their own when the file cannot be created', async (t) => {
  const { build } = await start(t, { before: () => Promise.reject(new Error('read-only')) });
  assert.ok((await all(build.read())).equals(WHOLE));
  assert.equal(await build.finished, undefined);
});

test('readers continue from a source of their own when writing the file fails', async (t) => {
  const { build } = await start(t, {
    write: async (fd, onLength) => {
      onLength(writeSync(fd, WHOLE, 0, 12_345));
      return 'not_written';
    },
  });
  assert.ok((await all(build.read())).equals(WHOLE));
  assert.equal(await build.finished, undefined);
});

test('a source that fails breaks off every reader', async (t) => {
  const { build } = await start(t, {
    async *source() {
      yield* CHUNKS.slice(0, 5);
      throw new Error('pruned');
    },
  });
  const readers = [build.read(), build.read()];
  for (const reader of readers) await assert.rejects(all(reader), /pruned/);
  assert.equal(await build.finished, undefined);
});

test('aborting ends the build and its readers', async (t) => {
  const { build } = await start(t);
  const reader = build.read();
  build.abort(new Error('erased'));
  await assert.rejects(all(reader), /erased/);
  assert.equal(await build.finished, undefined);
});

test('holds neither bytes nor its source once it is built and read', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-build-'));
  t.after(() => rm(directory, { recursive: true }));
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { build, held } = await (async () => {
    const bytes = Buffer.alloc(1_000_000);
    const source = async function* () {
      yield bytes;
    };
    const build = new BodyBuild({
      path: join(directory, 'body'),
      write: writing(source),
      source,
      admit: async () => true,
      before: async () => {},
    });
    await all(build.read());
    await build.finished;
    return { build, held: [new WeakRef(bytes), new WeakRef(source)] };
  })();
  await new Promise(setImmediate);
  collect();
  assert.ok(held.every((one) => one.deref() === undefined));
  assert.equal(build.joinable, false);
});
