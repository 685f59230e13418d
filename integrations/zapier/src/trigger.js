/** The triggers: switching a Zap on subscribes a webhook, and switching it off unsubscribes it. */
import { ask } from './ask.js';
import { outputFields } from './output-fields.js';
import { SAMPLES } from './samples.js';
import { subscribe, unsubscribe } from './subscriptions.js';
import { isSigned } from './verify.js';
import { workflowField } from './workflow-lists.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */
/** @import { EventKind } from './events.js' */

/** How long an event that has started a Zap is remembered: most repetitions arrive within minutes. */
const REMEMBERED_S = 3600;

/** Flowhook evaluates the filter, so events that do not match cost no task. */
const FILTER_FIELD = {
  key: 'filter',
  label: 'Filter',
  type: 'text',
  required: false,
  helpText:
    'Start only if this expression is true, such as `fallsBy(previous.price, record.price, "5%")`. The event then contains only the records that match. [Examples](https://github.com/flowhook/flowhook/blob/main/docs/guides/filters.md)',
};

/** @param {EventKind} event */
export function eventTrigger({ key, noun, label, description }) {
  const sample = SAMPLES[key] ?? {};
  return {
    key,
    noun,
    display: { label, description },
    operation: {
      type: 'hook',
      inputFields: [
        workflowField({
          required: false,
          helpText: 'Default: all workflows of the team, including workflows that are created later.',
        }),
        FILTER_FIELD,
      ],
      performSubscribe: (z, bundle) => switchOn(z, bundle, key),
      performUnsubscribe: switchOff,
      perform: (z, bundle) => receive(z, bundle, key),
      performList: async (z, bundle) => (await ask(z, bundle, { path: `/v1/samples/${key}` })).data,
      sample,
      outputFields: outputFields(sample),
    },
  };
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} type
 * @returns {Promise<{ id: string, teamId: string, publicKeys: string[] }>}
 */
async function switchOn(z, bundle, type) {
  // First, because these requests can fail without leaving a webhook behind.
  const me = await ask(z, bundle, { path: '/v1/me' });
  const teamId = me.data.team.id;
  const publicKeys = await signingKeys(z, bundle, teamId);
  const url = String(bundle.targetUrl);
  const id = await subscribe(z, bundle, {
    workflowId: bundle.inputData.workflowId ? String(bundle.inputData.workflowId) : undefined,
    url,
    events: [type],
    filter: bundle.inputData.filter ? String(bundle.inputData.filter) : undefined,
  });
  return { id, teamId, publicKeys };
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 */
async function switchOff(z, bundle) {
  await unsubscribe(z, bundle, { id: bundle.subscribeData?.id, url: bundle.targetUrl });
  return {};
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} type
 * @returns {Promise<Record<string, any>[]>} the event; empty if it was already received, or if it is a test of the
 *   webhook, which every webhook receives
 * @throws `z.errors.Error` if the event is not signed by the team
 */
async function receive(z, bundle, type) {
  const event = await verifiedEvent(z, bundle);
  if (event.type !== type) return [];
  return (await isNew(z, bundle, event.id)) ? [event] : [];
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @returns {Promise<Record<string, any>>}
 */
async function verifiedEvent(z, bundle) {
  const { content, headers = {} } = bundle.rawRequest ?? {};
  const trusted = /** @type {{ teamId?: string, publicKeys?: string[] }} */ (bundle.subscribeData ?? {});
  if (content !== undefined && trusted.teamId !== undefined) {
    const request = { content, headers };
    const signed =
      isSigned(request, trusted.publicKeys ?? []) ||
      // Keys may have been added since the Zap was switched on.
      isSigned(request, await signingKeys(z, bundle, trusted.teamId));
    if (signed) return JSON.parse(content);
  }
  throw new z.errors.Error(
    'This request was not signed by your Flowhook, so it starts nothing. If Flowhook did send it, switch the Zap off and on again',
    'NotVerified',
    401,
  );
}

/**
 * Returns the public keys of a team. Reading them requires no API key.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} teamId
 * @returns {Promise<string[]>}
 */
async function signingKeys(z, bundle, teamId) {
  const { data } = await ask(z, bundle, {
    path: `/.well-known/webhook-signing-keys/${encodeURIComponent(teamId)}`,
  });
  return data.keys.map((one) => one.key);
}

/**
 * A service that is killed during a request repeats it with the same id. Each Zap remembers its own events, because two Zaps
 * may receive the same event.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} eventId
 */
async function isNew(z, bundle, eventId) {
  const key = z.hash('sha256', `${bundle.subscribeData?.id} ${eventId}`);
  try {
    if ((await z.cache.get(key)) !== null) return false;
    return (await z.cache.set(key, true, REMEMBERED_S, undefined, true)) !== false;
  } catch (error) {
    // Starting the Zap twice is better than never.
    z.console.log(`Cannot remember ${eventId}: ${error}`);
    return true;
  }
}
