/** `flowhook events list` and `flowhook audit list`: lists events, and the changes in the audit log. */
import type { AuditLine, FlowhookEvent } from '../../../client/src/flowhook-client.ts';
import { parseExactly } from '../../std/exact-json.ts';
import type { Command } from '../command.ts';
import { localClient } from '../local-server.ts';
import { dateFrom, type Options, wholeNumber } from '../options.ts';
import { onTarget, soleTeam, type Target } from '../target.ts';
import { type Head, print, say, table } from '../terminal.ts';

const DEFAULT_EVENTS = 100;
const MAX_EVENTS = 1_000;
/** The number of events per request. */
const PAGE = 250;
const DEFAULT_LINES = 50;
const MAX_LINES = 10_000;

export function addEvents(program: Command): void {
  const list = program
    .command('events')
    .description('list the events of workflows and jobs')
    .command('list')
    .description('list events of a team, oldest first (with --json: their bodies as sent to webhooks)')
    .withExamples('events list', 'events list --after 0 --json')
    .option('--team <slug>', 'team, if there are several')
    .option('--filter <expression>', 'only events that match, with only the differences that match')
    .option('--after <sequence>', 'only events after this sequence number (default: the newest events)')
    .option('--limit <number>', `maximum number of events, up to ${MAX_EVENTS} (default: ${DEFAULT_EVENTS})`);
  onTarget(list, listEvents, { check: (options) => void spanFrom(options) });
}

export function addAudit(program: Command): void {
  const list = program
    .command('audit')
    .description('read the audit log: who changed what, when, and from where')
    .command('list')
    .description('list changes, newest first')
    .withExamples('audit list', 'audit list --team acme --action keys.create --since 2026-11-01 --json')
    .option('--team <slug>', 'only changes in this team (default: all teams and the instance)')
    .option('--action <name>', 'only changes by this operation, such as `webhooks.subscribe`')
    .option('--actor <key-id>', 'only changes made with this API key')
    .option('--target <id>', 'only changes to the object with this id')
    .option('--since <time>', 'only changes at or after this time, such as 2026-11-21 or 2026-11-21T10:00Z')
    .option('--limit <number>', `maximum number of changes, up to ${MAX_LINES} (default: ${DEFAULT_LINES})`);
  onTarget(list, listAudit, { check: (options) => void filterFrom(options) });
}

const EVENT_HEADS: readonly Head[] = [
  { name: '#' },
  { name: 'time' },
  { name: 'event' },
  { name: 'workflow' },
  { name: 'id', drop: 2 },
  { name: 'job', drop: 1 },
];

async function listEvents(target: Target, options: Options): Promise<void> {
  const { limit, after } = spanFrom(options);
  const filter = options.filter === undefined ? undefined : String(options.filter);
  const { client } = await soleTeam(target, 'Each team has its own sequence of events');
  const events: FlowhookEvent[] = [];
  // Without --after, the newest events are searched, and the last of those that match are printed.
  const most = filter !== undefined && after === undefined ? MAX_EVENTS : limit;
  let place = after ?? Math.max(0, (await client.events.page({ after: 'now' })).next - most);
  while (events.length < most) {
    const query = { after: String(place), limit: Math.min(PAGE, most - events.length), filter };
    const response = await client.request({ path: '/v1/events', query });
    // The exact parser preserves numbers that a double cannot represent, so that events look exactly as webhooks
    // receive them.
    const page = parseExactly(await response.text()) as { events: FlowhookEvent[]; next: number };
    events.push(...page.events);
    place = page.next;
    if (response.headers.get('link') === null) break;
  }
  const shown = events.slice(-limit);
  const cells = shown.map((event) => [
    String(event.sequence),
    event.timestamp,
    event.type,
    event.workflowId ?? '-',
    event.id,
    event.jobId ?? '',
  ]);
  print(options, shown, table(cells, process.stdout.columns, EVENT_HEADS));
  if (shown.length === 0 && options.json !== true) say('No events found');
}

/** @throws UsageError */
function spanFrom({ limit, after }: Options) {
  return {
    limit: wholeNumber('--limit', limit ?? DEFAULT_EVENTS, 1, MAX_EVENTS),
    after: after === undefined ? undefined : wholeNumber('--after', after, 0, Number.MAX_SAFE_INTEGER),
  };
}

const AUDIT_HEADS: readonly Head[] = [
  { name: 'time' },
  { name: 'team', drop: 2 },
  { name: 'action' },
  { name: 'target', drop: 4 },
  { name: 'by' },
  { name: 'from', drop: 1 },
  { name: 'change', drop: 3 },
];

async function listAudit({ teams: [first], local }: Target, options: Options): Promise<void> {
  const { limit, ...filter } = filterFrom(options);
  // On a database, changes of all teams and of the instance are listed by default.
  const team = local === undefined || options.team !== undefined ? {} : { team: '*' };
  // After the last team was deleted, no team has a client, but a client without a team can still read the audit log.
  const client = first?.client ?? (local && localClient({ ...local, teamId: '' }));
  const audit = client?.audit({ ...filter, ...team, limit: Math.min(1_000, limit) });
  const lines = (await audit?.take(limit)) ?? [];
  print(options, lines, table(lines.map(cellsOf), process.stdout.columns, AUDIT_HEADS));
  if (lines.length === 0 && options.json !== true) say('No changes found');
}

/** @throws UsageError */
function filterFrom({ action, actor, target, since, limit }: Options) {
  return {
    ...({ action, actor, target } as Record<'action' | 'actor' | 'target', string | undefined>),
    since: dateFrom('--since', since),
    limit: wholeNumber('--limit', limit ?? DEFAULT_LINES, 1, MAX_LINES),
  };
}

function cellsOf({ createdAt, team, action, actor, target, address, summary }: AuditLine): string[] {
  const who = actor.id === null ? [actor.name ?? actor.kind] : [actor.name, actor.id];
  return [
    createdAt,
    team ?? '-',
    action,
    target?.id ?? '-',
    `${who.filter(Boolean).join(' ')}${actor.kind === 'session' ? ' (dashboard)' : ''}`,
    address ?? '-',
    summary,
  ];
}
