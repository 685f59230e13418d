/** The audit log: lines written in the transaction of the change they describe. */
import { newId } from '../../std/id.ts';
import type { AuditOperations } from '../audit-operations.ts';
import { AUDIT_COLUMNS, type AuditRow, auditValues, STORED_COLUMNS, toAuditLine } from '../audit-row.ts';
import { linesOf } from '../audited.ts';
import { idsBetween } from '../id-period.ts';
import type { Value } from './database.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof AuditOperations> = Parameters<AuditOperations[Name]>[0];
type Result<Name extends keyof AuditOperations> = Awaited<ReturnType<AuditOperations[Name]>>;

/** How many lines one call scans when filtering by action, actor or target. */
const LOOKED_THROUGH = 5_000;

export function add(tx: View, line: Input<'add'>): void {
  tx.db.run(
    `insert into audit (${STORED_COLUMNS.join(', ')}) values (${STORED_COLUMNS.map(() => '?').join(', ')})`,
    ...auditValues(line, { id: newId('aud', tx.now), now: tx.now }),
  );
}

/** Writes the lines of an operation just carried out in this transaction, if it has an author. */
export function note(tx: Tx, input: unknown, result: unknown): void {
  if (tx.repeated) return;
  for (const line of linesOf(input, result)) add(tx, line);
}

export function list(view: View, input: Input<'list'>): Result<'list'> {
  const { teamId, action, actorId, targetId, limit } = input;
  const { first, end, since, until } = idsBetween('aud', input);
  const [ofTeam, team] = teamId === undefined ? ['', []] : ['a.team_id = ? and', [teamId]];
  const isSearch = action !== undefined || actorId !== undefined || targetId !== undefined;
  const last = isSearch
    ? view.db.get<{ id: string }>(
        `select a.id from audit a where ${ofTeam} a.id < ? and a.id >= ? order by a.id desc limit 1 offset ?`,
        ...team,
        end,
        first,
        LOOKED_THROUGH - 1,
      )?.id
    : undefined;
  const wanted: [string, Value | undefined][] = [
    ['a.action = ?', action],
    ['a.actor = ?', actorId],
    ['a.target_id = ?', targetId],
  ];
  const given = wanted.filter(([, value]) => value !== undefined);
  const rows = view.db.all<AuditRow>(
    `select ${AUDIT_COLUMNS} from audit a
     left join api_key k on k.id = a.actor left join team t on t.id = a.team_id
     where ${ofTeam} a.id < ? and a.id >= ? and a.created_at between ? and ?
       ${given.map(([condition]) => `and ${condition}`).join(' ')}
     order by a.id desc limit ?`,
    ...team,
    end,
    last ?? first,
    since,
    until,
    ...given.map(([, value]) => value as Value),
    limit + 1,
  );
  const lines = rows.slice(0, limit).map(toAuditLine);
  return { lines, next: rows.length > limit ? (lines.at(-1)?.id ?? null) : (last ?? null) };
}

export function prune(tx: Tx, { olderMs, limit }: Input<'prune'>): Result<'prune'> {
  const { end, until } = idsBetween('aud', { until: tx.now - olderMs });
  const gone = tx.db.run(
    `delete from audit where (team_id, id) in
       (select team_id, id from audit indexed by audit_line where id < ? and created_at <= ? order by id limit ?)`,
    end,
    until,
    limit,
  );
  return { done: gone < limit };
}
