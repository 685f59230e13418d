/** Carries out a random history with a real store and the engine of rules, and compares what arrives with the model. */
import assert from 'node:assert/strict';
import { DEFAULT_RULE, type Rule as StoredRule } from '../../../src/model/rule.ts';
import type { Webhook } from '../../../src/model/webhook.ts';
import { load, OK, settlement } from '../../../src/store/conformance/sending.ts';
import {
  allSteps,
  beginPush,
  makeWorkflow,
  publish,
  stageRecords,
} from '../../../src/store/conformance/setup.ts';
import type { Store } from '../../../src/store/store.ts';
import { assertArrived } from './arrived.ts';
import type { Item } from './filters.ts';
import { differencesOf, happened } from './happened.ts';
import { type History, type Step, WORKFLOWS } from './histories.ts';
import type { Difference, Entry, Rule } from './model.ts';

export interface Ground {
  store: Store;
  /** The clock of the store. */
  clock: { now(): number; advance(ms: number): void; latest(): number };
  /** Two engines of rules on this store, the second one with a store that can die. */
  engines: [Engine, Engine];
  mortal: MortalStore;
}

interface Engine {
  /** Decides everything that is due. */
  tick(): Promise<void>;
}

interface Arrived {
  deliveryId: string;
  eventId: string;
  body: string;
}

interface Subscribed {
  id: string;
  workflow: string | null;
  events: readonly string[];
  log: Entry[];
  rule: Rule | null;
  arrived: Arrived[];
}

let teams = 0;
/** Longer than any cooldown or digest. */
const SETTLED_MS = 8 * 86_400_000;

/** @throws AssertionError if anything is lost, doubled or different */
export async function checkHistory(ground: Ground, { webhooks, steps }: History): Promise<void> {
  const { store, clock } = ground;
  clock.advance(clock.latest() - clock.now());
  const world = new World(ground);
  await world.begin(webhooks);
  for (const step of steps) await world.take(step);
  // Everything arrives in the end, and only once.
  clock.advance(clock.latest() - clock.now());
  for (let times = 0; times < 2; times++) {
    await world.decide();
    clock.advance(SETTLED_MS);
  }
  await world.decide();
  for (const one of world.webhooks) await store.webhooks.resume({ teamId: world.teamId, id: one.id });
  await world.send();
  world.compare();
  await world.replay();
  await world.end();
}

class World {
  readonly #ground: Ground;
  readonly webhooks: Subscribed[] = [];
  readonly #items = new Map<string, Map<string, Item>>();
  teamId = '';
  #read = 0;
  /** Whether the last decisions were made while the clock was set back, so that some of them wait. */
  #wasSetBack = false;

  constructor(ground: Ground) {
    this.#ground = ground;
  }

  async begin(webhooks: History['webhooks']): Promise<void> {
    const { store } = this.#ground;
    const team = `t${teams++}`;
    for (const id of WORKFLOWS) {
      ({ teamId: this.teamId } = await makeWorkflow(store, { team, id, source: { type: 'push' } }));
      this.#items.set(id, new Map());
    }
    for (const [number, { workflow, events, rule }] of webhooks.entries()) {
      const workflowId = workflow === null ? null : (WORKFLOWS[workflow] ?? null);
      const made = await store.webhooks.subscribe({
        teamId: this.teamId,
        workflowId,
        url: `https://a.test/${number}`,
        events,
        secret: 'sealed',
        limit: 1_000,
        rule: toStored(rule),
      });
      const { id } = (made as { webhook: Webhook }).webhook;
      this.webhooks.push({ id, workflow: workflowId, events, log: [{ rule }], rule, arrived: [] });
    }
  }

  async take(step: Step): Promise<void> {
    const { store, clock } = this.#ground;
    const { teamId } = this;
    if (step.kind === 'publish') await this.#publish(step);
    else if (step.kind === 'wait') clock.advance(step.ms);
    else if (step.kind === 'decide') await this.decide();
    else if (step.kind === 'crash') await this.#crash(step);
    else if (step.kind === 'race') await this.#race();
    else if (step.kind === 'send') await this.send();
    else if (step.kind === 'prune') await this.#prune();
    else {
      const one = this.webhooks[step.webhook];
      if (one === undefined) return;
      if (step.kind === 'change') {
        // While the clock is set back, decisions wait for it. Whether they were made counts for a digest that changes.
        if (clock.now() < clock.latest() || this.#wasSetBack) {
          clock.advance(clock.latest() - clock.now());
          await this.decide();
        }
        await store.webhooks.change({ teamId, id: one.id, rule: toStored(step.rule) });
        one.log.push({ rule: step.rule, at: clock.now() });
      } else if (step.kind === 'pause') {
        await store.webhooks.pause({ teamId, id: one.id, reason: 'On request' });
      } else {
        await store.webhooks.resume({ teamId, id: one.id });
      }
      await this.#readEvents();
    }
  }

  async #publish({ workflow, replaces, items }: Step & { kind: 'publish' }): Promise<void> {
    const { store } = this.#ground;
    const workflowId = WORKFLOWS[workflow] ?? '';
    const held = await beginPush(store, { teamId: this.teamId, workflowId });
    const mode = replaces ? 'replace' : 'upsert';
    const records = items.map((item) => ({ id: item.id, body: JSON.stringify(item) }));
    const seqs = await stageRecords(store, held, mode, records);
    const after = new Map(replaces ? [] : this.#items.get(workflowId));
    for (const item of items) after.set(item.id, JSON.parse(JSON.stringify(item)));
    if (replaces) {
      const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 100 });
      const unseen = current.seqs.filter((seq) => !seqs.includes(seq));
      if (unseen.length > 0) await store.records.remove({ held, seqs: unseen });
    }
    await publish(store, held, { mode });
    const before = this.#items.get(workflowId) ?? new Map();
    this.#items.set(workflowId, after);
    await this.#readEvents(differencesOf(before, after));
  }

  /** Adds new events to the histories of the webhooks that are subscribed to them. */
  async #readEvents(differences: Difference[] = []): Promise<void> {
    const { store } = this.#ground;
    const events = await store.events.list({ teamId: this.teamId, afterSequence: this.#read, limit: 100 });
    for (const stored of events) {
      const { sequence, type, workflowId } = stored;
      this.#read = sequence;
      // Other webhooks do not receive the digest of a webhook.
      if (type === 'webhook_digest') continue;
      const event = happened(stored, differences);
      for (const one of this.webhooks) {
        // A webhook is not notified of its own pause.
        const isOwn = type === 'webhook_paused' && stored.body.includes(one.id);
        const isSubscribed = !isOwn && (one.events.includes('*') || one.events.includes(type));
        if (isSubscribed && (one.workflow === null || one.workflow === workflowId)) one.log.push({ event });
      }
    }
  }

  async decide(): Promise<void> {
    const { engines, clock } = this.#ground;
    await engines[0].tick();
    this.#wasSetBack = clock.now() < clock.latest();
    for (const { log } of this.webhooks) log.push({ decide: clock.now() });
  }

  async #crash({ call, isCommitted, ms }: Step & { kind: 'crash' }): Promise<void> {
    const { engines, mortal, clock } = this.#ground;
    mortal.dieAt(call, isCommitted);
    await engines[1].tick();
    mortal.revive();
    clock.advance(ms);
    await this.decide();
  }

  async #race(): Promise<void> {
    await Promise.all(this.#ground.engines.map((engine) => engine.tick()));
    await this.decide();
  }

  /** Loads and settles what waits, as a lane does whose receiver accepts everything. */
  async send(): Promise<void> {
    for (const one of this.webhooks) one.arrived.push(...(await this.#sendTo(one)));
  }

  async #sendTo({ id }: Subscribed): Promise<Arrived[]> {
    const { store } = this.#ground;
    const webhook = await store.webhooks.get({ teamId: this.teamId, id });
    if (webhook?.state !== 'active') return [];
    const due = await load(store, this.teamId, id);
    const settlements = due.map((one) => settlement(one, one.attempt + 1, { state: 'delivered' }, OK));
    if (due.length > 0) await store.deliveries.settle({ settlements });
    return due.map((one) => ({ deliveryId: one.id, eventId: one.eventId, body: one.body }));
  }

  async #prune(): Promise<void> {
    for (const workflowId of WORKFLOWS) {
      await allSteps(
        () =>
          this.#ground.store.records.prune({
            teamId: this.teamId,
            workflowId,
            keepVersions: 1,
            keepMs: 0,
            graceMs: 0,
            limit: 100,
          }),
        {},
      );
    }
  }

  compare(): void {
    for (const { log, arrived } of this.webhooks) {
      const inOrder = arrived.toSorted((a, b) => (a.deliveryId < b.deliveryId ? -1 : 1));
      assertArrived(
        log,
        inOrder.map(({ body }) => body),
      );
    }
  }

  /** A replay sends what was sent, to the byte. */
  async replay(): Promise<void> {
    const { store, clock } = this.#ground;
    const { teamId } = this;
    for (const one of this.webhooks) {
      const started = await store.deliveries.startReplay({
        teamId,
        webhookId: one.id,
        states: ['delivered'],
      });
      if (started === undefined) continue;
      while ((await store.deliveries.getReplay({ teamId, id: started.id }))?.state === 'running')
        await store.deliveries.stepReplays({ limit: 100, waiting: 1_000 });
      clock.advance(10_000);
      const bodies = (all: readonly Arrived[]) => all.map(({ body }) => body).sort();
      assert.deepEqual(bodies(await this.#sendTo(one)), bodies(one.arrived), 'a replay sends what was sent');
    }
  }

  async end(): Promise<void> {
    const ids = this.webhooks.map(({ id }) => id);
    await this.#ground.store.webhooks.unsubscribe({ teamId: this.teamId, ids });
  }
}

/** A time of day as `HH:MM`. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().slice(11, 16);
}

function toStored(rule: Rule | null): StoredRule | null {
  if (rule === null) return null;
  const { filter, firstVersion, cooldownMs, digest } = rule;
  const stored =
    digest === null || 'everyMs' in digest ? digest : { at: timeText(digest.atMs), timeZone: 'UTC' };
  return { ...DEFAULT_RULE, filter: filter.cel, firstVersion, cooldownMs, digest: stored };
}

/** A store that fails all calls of an engine from some call on, as if the node had died. */
export interface MortalStore {
  store: Store;
  /** @param isCommitted whether the call at which the node dies still has its effect */
  dieAt(call: number, isCommitted: boolean): void;
  revive(): void;
}

export function mortal(store: Store): MortalStore {
  let left = Number.POSITIVE_INFINITY;
  let isLastCommitted = false;
  const dead = () => Promise.reject(new Error('The node has died'));
  const wrap =
    (act: (...input: unknown[]) => unknown) =>
    async (...input: unknown[]) => {
      left -= 1;
      if (left < -1 || (left === -1 && !isLastCommitted)) return dead();
      const isLast = left === -1;
      const result = await act(...input);
      return isLast ? dead() : result;
    };
  const group = (operations: object) =>
    new Proxy(operations, {
      get: (target, name) => {
        const operation = Reflect.get(target, name);
        return typeof operation === 'function' ? wrap(operation.bind(target)) : operation;
      },
    });
  return {
    store: new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (typeof value === 'function') return value.bind(target);
        return typeof value === 'object' && value !== null ? group(value) : value;
      },
    }),
    dieAt(call, isCommitted) {
      left = call;
      isLastCommitted = isCommitted;
    },
    revive() {
      left = Number.POSITIVE_INFINITY;
    },
  };
}
