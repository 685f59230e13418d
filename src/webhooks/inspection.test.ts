/** The limits of inspectors. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Problem } from '../model/error.ts';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { createResolver } from '../net/resolver.ts';
import { silentLogger } from '../observe/log.ts';
import { createSealer } from '../std/seal.ts';
import { openStore } from '../store/open.ts';
import { Inspection } from './inspection.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-inspection-'));
const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
  publicUrl: () => '',
  log: silentLogger,
  synchronous: 'OFF',
});
after(async () => {
  await store.close();
  await rm(directory, { recursive: true });
});
const { id: teamId } = await store.teams.ensure({ slug: 'default' });
let nowMs = 0;
const inspection = new Inspection({
  store,
  sealer: createSealer(randomBytes(32)),
  policy: parseAllowNetworks('none'),
  resolver: createResolver(),
  publicUrl: () => 'http://0.0.0.0:8080',
  elapsed: () => nowMs,
});

async function make(id: string, { delayMs = 0, team = teamId } = {}): Promise<void> {
  await store.inspectors.create({ teamId: team, id, status: 204, delayMs, forMs: 60_000, most: 20 });
}

const body = { bytes: Buffer.from('{}'), size: 2, truncated: false };
const arrived = (read = async () => body) => ({
  method: 'POST',
  path: '/',
  headers: {},
  read,
  gone: new AbortController().signal,
});
const isOverloaded = (error: unknown) => error instanceof Problem && error.code === 'overloaded';

test('an inspector accepts 100 requests in a row and then 50 per second, regardless of others', async () => {
  await make('insp_1');
  await make('insp_2');
  for (let n = 0; n < 100; n++) assert.equal(await inspection.receive('insp_1', arrived()), 204);
  await assert.rejects(inspection.receive('insp_1', arrived()), isOverloaded);
  assert.equal(await inspection.receive('insp_2', arrived()), 204);
  nowMs += 20;
  assert.equal(await inspection.receive('insp_1', arrived()), 204);
  await assert.rejects(inspection.receive('insp_1', arrived()), isOverloaded);
  nowMs += 3_600_000;
});

test('limits concurrent requests: 256 in total, three quarters of them for one team', async () => {
  const { promise: sent, resolve: send } = Promise.withResolvers<typeof body>();
  const reading: Promise<number>[] = [];
  async function begin(id: string): Promise<void> {
    const begun = Promise.withResolvers<void>();
    const read = () => {
      begun.resolve();
      return sent;
    };
    reading.push(inspection.receive(id, arrived(read)));
    await begun.promise;
  }
  await make('insp_many_1');
  await make('insp_many_2');
  for (let n = 0; n < 192; n++) await begin(`insp_many_${1 + (n % 2)}`);
  await assert.rejects(inspection.receive('insp_many_1', arrived()), isOverloaded);
  await make('insp_other', { team: (await store.teams.ensure({ slug: 'other' })).id });
  await begin('insp_other');
  send(body);
  assert.equal((await Promise.all(reading)).length, 193);
  assert.equal(await inspection.receive('insp_many_1', arrived()), 204);
});

test('says why deliveries to inspectors are rejected, and which setting has their address', async () => {
  const refusal = await inspection.refusal();
  assert.match(refusal ?? '', /^Deliveries will be refused: 0\.0\.0\.0 is .*FLOWHOOK_PUBLIC_URL/);
});

test('`close` ends the delays of responses', async () => {
  await make('insp_late', { delayMs: 20_000 });
  const waiting = inspection.receive('insp_late', arrived());
  while ((await store.inspectors.find({ id: 'insp_late' }))?.received === 0) {
    await new Promise((next) => setImmediate(next));
  }
  inspection.close();
  assert.equal(await waiting, 204);
  assert.equal(await inspection.receive('insp_late', arrived()), 204);
});
