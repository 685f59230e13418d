/** `flowhook audit list`: lists who changed what, when, and from where. */
import type { Command } from 'commander';
import type { AuditOptions, Flowhook } from 'flowhook-client';
import { shownAuditLine } from '../resources/audit-line.ts';
import type { AuditFilter } from '../store/operations/audit.ts';
import type { Store } from '../store/store.ts';
import { findTeams } from './find.ts';
import { timeFrom, wholeNumber } from './flag-values.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { type Head, table } from './table.ts';

const DEFAULT_LINES = 50;
const MAX_LINES = 10_000;
const AT_ONCE = 1_000;

type Shown = ReturnType<typeof shownAuditLine>;

export function addAudit(program: Command): void {
  const audit = program.command('audit').description('the audit log: who changed what, when, and from where');
  const list = audit
    .command('list')
    .description('list changes, newest first')
    .option('--team <slug>', 'only changes of one team (default: all, including those of the instance)')
    .option('--action <name>', 'only this operation, such as `webhooks.subscribe`')
    .option('--actor <key-id>', 'only changes made with this key')
    .option('--target <id>', 'only changes to the object with this id')
    .option('--since <time>', 'only since this time, such as 2026-11-21 or 2026-11-21T10:00Z')
    .option('--limit <number>', `how many at most (default: ${DEFAULT_LINES}, up to ${MAX_LINES})`);
  orRemote(addStoreOptions(list), listAudit, listAuditAt);
}

async function listAudit(options: Options): Promise<void> {
  const limit = limitFrom(options);
  await withStore(options, { make: false }, async (store) => {
    const { action, actor: actorId, target: targetId } = options as Record<string, string | undefined>;
    const [team] = options.team === undefined ? [] : await findTeams(store, options.team);
    const given = { teamId: team?.id, action, actorId, targetId, since: timeFrom('--since', options.since) };
    const filter = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    tell(options, await linesFrom(store, filter, limit));
  });
}

async function linesFrom(store: Store, filter: AuditFilter, limit: number): Promise<Shown[]> {
  const lines: Shown[] = [];
  let before: string | undefined;
  do {
    const some = Math.min(AT_ONCE, limit - lines.length);
    const page = await store.audit.list({
      ...filter,
      limit: some,
      ...(before === undefined ? {} : { before }),
    });
    lines.push(...page.lines.map(shownAuditLine));
    before = page.next ?? undefined;
  } while (before !== undefined && lines.length < limit);
  return lines;
}

async function listAuditAt(server: Flowhook, options: Options): Promise<void> {
  const limit = limitFrom(options);
  const { action, actor, target } = options as Record<string, string | undefined>;
  const since = timeFrom('--since', options.since);
  const wanted: AuditOptions = { action, actor, target, limit: Math.min(AT_ONCE, limit) };
  const lines = await server.audit({ ...wanted, ...(since && { since: new Date(since) }) }).take(limit);
  tell(options, lines);
}

function limitFrom({ limit }: Options): number {
  return wholeNumber('--limit', limit ?? DEFAULT_LINES, 1, MAX_LINES);
}

function tell(options: Options, lines: readonly Shown[]): void {
  print(options, lines, table(lines.map(cellsOf), process.stdout.columns, HEADS));
  if (lines.length === 0 && options.json !== true) say('No changes found');
}

const HEADS: readonly Head[] = [
  { name: 'time' },
  { name: 'team', drop: 2 },
  { name: 'action' },
  { name: 'of', drop: 4 },
  { name: 'by' },
  { name: 'from', drop: 1 },
  { name: 'what', drop: 3 },
];

function cellsOf({ createdAt, team, action, actor, target, address, summary }: Shown): string[] {
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
