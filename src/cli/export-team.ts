/** Exports everything that a team has as files, before it is deleted. */

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Team } from '../model/team.ts';
import { formatter } from '../records/formats.ts';
import { openVersion, type Place, readWhole } from '../records/read.ts';
import { shownWebhook } from '../resources/webhook.ts';
import { toIso } from '../std/clock.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import type { WebhookDeps } from '../webhooks/deps.ts';
import { UsageError } from './exit.ts';

/** How many events are read at once. */
const EVENTS_AT_ONCE = 250;

/**
 * Writes `team.json`, `workflows/<id>.json` (definitions), `data/<id>.ndjson` (the newest records), `webhooks.json`
 * (without secrets and values of headers) and `events.ndjson` into a new directory that only its owner can read.
 *
 * @throws UsageError when the directory exists already
 */
export async function exportTeam(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  team: Team,
  directory: string,
): Promise<void> {
  if (existsSync(directory)) {
    throw new UsageError(`${directory} exists already: name another directory with --export`);
  }
  const { store } = deps;
  const { id: teamId, slug, createdAt } = team;
  const write = async (name: string, content: string | AsyncIterable<Uint8Array>) => {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(path, content, { flag: 'wx', mode: 0o600 });
  };
  await write('team.json', pretty({ id: teamId, slug, createdAt: toIso(createdAt) }));
  const active = new Set<string>();
  for await (const { id } of everyRow(store.workflows.list, { teamId })) active.add(id);
  for await (const { id, definition } of everyRow(store.erasure.workflows, { teamId })) {
    await write(`workflows/${id}.json`, pretty(JSON.parse(definition)));
    const place = { teamId, workflowId: id };
    await write(`data/${id}.ndjson`, active.has(id) ? recordsOf(store, place) : archivedOf(store, place));
  }
  const webhooks = [];
  for await (const webhook of everyRow(store.webhooks.list, { teamId }))
    webhooks.push(await shownWebhook(deps, webhook));
  await write('webhooks.json', pretty(webhooks));
  await write('events.ndjson', eventsOf(store, teamId));
}

async function* recordsOf(store: Store, place: Place): AsyncGenerator<Uint8Array> {
  const version = await openVersion(store, place);
  yield* readWhole(
    store,
    place,
    version,
    formatter({ format: 'ndjson', columns: version.fields, only: null }),
  );
}

/** The records of an archived workflow, which has no readable version: those that no run has removed. */
async function* archivedOf(store: Store, place: Place): AsyncGenerator<Uint8Array> {
  for (let after: string | null = null; ; ) {
    // Every text contains the empty one.
    const look = { ...place, needles: [''], ids: [], after };
    const { rows, next }: Awaited<ReturnType<Store['erasure']['scanRecords']>> =
      await store.erasure.scanRecords(look);
    for (const { removedIn, body } of rows) if (removedIn === null) yield Buffer.from(`${body}\n`);
    if (next === null) return;
    after = next;
  }
}

async function* eventsOf(store: Store, teamId: string): AsyncGenerator<Uint8Array> {
  for (let afterSequence = 0; ; ) {
    const events = await store.events.list({ teamId, afterSequence, limit: EVENTS_AT_ONCE });
    for (const { body } of events) yield Buffer.from(`${body}\n`);
    const last = events.at(-1);
    if (last === undefined) return;
    afterSequence = last.sequence;
  }
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
