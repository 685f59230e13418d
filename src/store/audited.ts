/**
 * Lists the operations that write an audit line, and what each line says. The driver writes the line in the transaction
 * of the change (`note`), using the operation's input and result. Every write operation is listed either here or, with
 * the reason for having no audit line, in `audited.test.ts`.
 */
import { type Author, type Change, OF_INSTANCE, type Target } from '../model/audit.ts';
import { maskedUrl } from '../model/messages/destination.ts';
import type { OwnQuotas } from '../model/quota.ts';
import { bytesWords, countWords } from '../std/amounts.ts';
import { add } from './operations/audit.ts';
import type { ChangedWebhook } from './operations/webhooks/change.ts';
import type { Store } from './store.ts';
import type { Tx } from './transaction.ts';

/** Describes what an operation changed. `keyId` names the author if only the operation knows the author's key. */
type Described = Omit<Change, 'action' | 'teamId'> & { teamId?: string; action?: string; keyId?: string };

/** Describes the change, or returns undefined if nothing changed. Not called when `tx.repeated` is set. */
type Describe<Operation> = Operation extends (input: infer Input) => Promise<infer Result>
  ? (input: Input, result: Result) => Described | readonly Described[] | undefined
  : never;

type Table = {
  readonly [Group in keyof Store]?: { readonly [Name in keyof Store[Group]]?: Describe<Store[Group][Name]> };
};

const at = (kind: Target['kind'], id: string): Target => ({ kind, id });
const quotaWords = (quotas: OwnQuotas) =>
  Object.entries(quotas)
    .map(([name, most]) => `${name} ${most ?? 'off'}`)
    .join(', ') || 'the defaults of the instance';
/** The name of a value that is given. */
const given = ([name, value]: [string, unknown]) => (value === undefined ? [] : [name]);
const until = (ms: number | null) => (ms === null ? 'without expiry' : `until ${new Date(ms).toISOString()}`);

export const AUDITED = {
  teams: {
    ensure: (_, { id, slug }) => ({
      teamId: id,
      action: 'teams.create',
      target: at('team', id),
      summary: slug,
    }),
    // This line belongs to the instance instead of the team, because the team's lines are deleted with the team.
    retire: ({ teamId }, result) =>
      result?.outcome === 'retired'
        ? { teamId: OF_INSTANCE, action: 'teams.delete', target: at('team', teamId), summary: result.slug }
        : undefined,
    setQuotas: ({ teamId, quotas }) => ({ target: at('team', teamId), summary: quotaWords(quotas) }),
  },
  keys: {
    create: (_, key) => ({
      target: at('key', key.id),
      summary: `${key.scopes.join(', ')} ${until(key.expiresAt)}`,
    }),
    revoke: (_, key) => key && { teamId: key.teamId, target: at('key', key.id), summary: '' },
    rotate: ({ id, overlapMs }, key) =>
      key && {
        target: at('key', id),
        summary: `replaced by ${key.id}${overlapMs === 0 ? '' : `; both are valid for ${overlapMs / 1_000} s`}`,
      },
  },
  sessions: {
    begin: (_, session) => session && signedIn(session, 'with the key'),
    redeem: (_, session) => session && signedIn(session, 'by a link'),
    makeLink: ({ keyId }, link) =>
      link && {
        teamId: link.teamId,
        target: at('key', keyId),
        summary: `single use, ${until(link.expiresAt)}`,
      },
  },
  workflows: {
    apply: ({ id, definition }, outcome) =>
      outcome === 'unchanged' || outcome === 'stale'
        ? undefined
        : { target: at('workflow', id), summary: `${outcome}, source ${definition.source.type}` },
    archive: ({ ids }, count) =>
      count === 0 ? undefined : ids.map((id) => ({ target: at('workflow', id), summary: '' })),
    pause: ({ id }, workflow) => workflow && { target: at('workflow', id), summary: '' },
    resume: ({ id }, workflow) => workflow && { target: at('workflow', id), summary: '' },
    setState: ({ id, state }, { outcome }) =>
      outcome === 'set'
        ? {
            target: at('workflow', id),
            summary: state === null ? 'reset' : bytesWords(Buffer.byteLength(state)),
          }
        : undefined,
  },
  jobs: {
    cancel: ({ id }, result) =>
      result === undefined || result.outcome === 'ended'
        ? undefined
        : { target: at('job', id), summary: `of workflow ${result.job.workflowId}` },
    runNow: ({ id }, result) =>
      result?.outcome === 'due'
        ? { target: at('job', id), summary: `of workflow ${result.job.workflowId}` }
        : undefined,
  },
  webhooks: {
    subscribe: ({ workflowId, events }, result) =>
      result.outcome === 'created' || (result.outcome === 'existing' && result.resumed)
        ? {
            target: at('webhook', result.webhook.id),
            summary:
              result.outcome === 'existing'
                ? 'resumed'
                : `to ${events.length === 1 ? 'one event' : `${events.length} events`} of ${workflowId === null ? 'all workflows' : `workflow ${workflowId}`}`,
          }
        : undefined,
    unsubscribe: ({ ids }, result: number | { removed: number }) =>
      // Here `result` comes from the driver's transaction. It is an object that also says whether deliveries are left
      // to cancel.
      (typeof result === 'number' ? result : result.removed) === 0
        ? undefined
        : ids.map((id) => ({ target: at('webhook', id), summary: '' })),
    rotate: ({ id, overlapMs }, webhook) =>
      webhook && {
        target: at('webhook', id),
        summary: overlapMs === 0 ? 'new secret' : `new secret; both sign for ${overlapMs / 3_600_000} h`,
      },
    change: ({ id, settings = {}, ...others }, webhook) => {
      if (webhook === undefined) return undefined;
      const { url, events, secret, headers, name, description, labels, rule } = others;
      const values = { url, events, secret, headers, name, description, labels, rule };
      const names = [...Object.keys(settings), ...Object.entries(values).flatMap(given)];
      return { target: at('webhook', id), summary: names.join(', '), ...moved(webhook) };
    },
    pause: ({ id }, webhook) => webhook && { target: at('webhook', id), summary: '' },
    resume: ({ id }, webhook) => webhook && { target: at('webhook', id), summary: '' },
    verify: ({ id }, webhook) => webhook && { target: at('webhook', id), summary: 'by the link in a mail' },
    withdraw: ({ id }, webhook) => webhook && { target: at('webhook', id), summary: 'by the link in a mail' },
    noteVerificationMail: ({ id }, noted) =>
      noted?.isAllowed === true
        ? { action: 'webhooks.sendVerification', target: at('webhook', id), summary: '' }
        : undefined,
    test: ({ id }, made) => made && { target: at('webhook', id), summary: '' },
  },
  deliveries: {
    replay: ({ ids }, made) => made && ids.map((id) => ({ target: at('delivery', id), summary: '' })),
    startReplay: ({ webhookId, states }, replay) =>
      replay && { target: at('webhook', webhookId), summary: `${states.join(' and ')} deliveries` },
    startRetry: ({ webhookIds, states }, id) =>
      id === undefined
        ? undefined
        : webhookIds.map((webhookId) => ({
            target: at('webhook', webhookId),
            summary: `${states.join(' and ')} deliveries, retry ${id}`,
          })),
  },
  feeds: {
    create: ({ workflowId }, result) =>
      result.outcome === 'created' && result.feed !== undefined
        ? { target: at('feed', result.feed.id), summary: `of workflow ${workflowId}` }
        : undefined,
    change: ({ id, settings }, feed) =>
      feed === undefined || feed === 'stale'
        ? undefined
        : { target: at('feed', id), summary: Object.keys(settings).join(', ') },
    rotate: ({ id }, feed) => feed && { target: at('feed', id), summary: 'new address' },
    revoke: ({ id }, isGone) => (isGone ? { target: at('feed', id), summary: '' } : undefined),
  },
  records: {
    publish: ({ accepted, held }, result) =>
      accepted === undefined || !('version' in result)
        ? undefined
        : {
            teamId: held.teamId,
            action: 'quarantine.accept',
            target: at('job', held.jobId),
            summary: `${countWords(accepted, 'record')}, version ${result.version}`,
          },
  },
  quarantine: {
    drop: ({ workflowId }, { dropped }) =>
      dropped === 0
        ? undefined
        : { target: at('workflow', workflowId), summary: countWords(dropped, 'record') },
  },
  inspectors: {
    create: (_, inspector) => inspector && { target: at('inspector', inspector.id), summary: '' },
    change: ({ id }, inspector) => inspector && { target: at('inspector', id), summary: '' },
    remove: ({ id }, isGone) => (isGone ? { target: at('inspector', id), summary: '' } : undefined),
  },
} satisfies Table;

/** Where a webhook sent which events, and where it sends which now, if that has changed. */
function moved({ was, ...webhook }: ChangedWebhook): Pick<Described, 'details'> {
  if (was === undefined) return {};
  const shown = ({ url, events, rule }: typeof was) => ({ url: maskedUrl(url, rule), events });
  return { details: { before: shown(was), after: shown(webhook) } };
}

function signedIn({ teamId, keyId }: { teamId: string; keyId: string }, how: string): Described {
  return { teamId, keyId, action: 'sessions.begin', target: at('key', keyId), summary: how };
}

/** What `authoredBy` adds to the input of each operation of the table. */
interface Authored {
  authored?: { author: Author; operation: string };
}

type Groups = Record<string, Record<string, (input: object) => unknown>>;

/**
 * Returns the same store, but with this author in the audit lines of changes. Background work (retention, runs,
 * deliveries) uses the original store, which writes no audit lines.
 */
export function authoredBy(store: Store, author: Author): Store {
  const { audit } = store;
  const audited = {
    ...audit,
    add: (input: Parameters<typeof audit.add>[0]) => audit.add({ author, ...input }),
  };
  const authored = { ...store, audit: audited } as unknown as Groups;
  for (const [group, names] of NAMES) {
    const own = { ...authored[group] };
    for (const name of names) {
      const operation = own[name] as (input: object) => unknown;
      const mark: Authored = { authored: { author, operation: `${group}.${name}` } };
      own[name] = (input) => operation({ ...input, ...mark });
    }
    authored[group] = own;
  }
  return authored as unknown as Store;
}

const NAMES = Object.entries(AUDITED).map(([group, operations]) => [group, Object.keys(operations)] as const);

/**
 * Returns the audit lines of a finished operation. The list is empty if the operation has no author or changed nothing.
 */
function linesOf(input: unknown, result: unknown): readonly { change: Change; author: Author }[] {
  const { authored, teamId = OF_INSTANCE } = (input ?? {}) as Authored & { teamId?: string };
  if (authored === undefined) return [];
  const { author, operation } = authored;
  const [group = '', name = ''] = operation.split('.');
  const describe = (AUDITED as unknown as Record<string, Record<string, (...given: unknown[]) => unknown>>)[
    group
  ]?.[name];
  const described = (describe?.(input, result) ?? []) as Described | readonly Described[];
  return [described].flat().map(({ keyId, ...change }: Described) => ({
    change: { teamId, action: operation, ...change },
    author: keyId === undefined ? author : { ...author, id: keyId },
  }));
}

/** Writes the audit lines of an operation that has run in this transaction. */
export async function note(tx: Tx, input: unknown, result: unknown): Promise<void> {
  if (tx.repeated) return;
  for (const line of linesOf(input, result)) await add(tx, line);
}
