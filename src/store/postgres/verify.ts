/** Checks a restored PostgreSQL database: reads all of it in one snapshot, and reports what it holds. */
import { silentLogger } from '../../observe/log.ts';
import { halfVersion, type Inspection } from '../backup.ts';
import type { BackupCounts } from '../backup-files.ts';
import { REFUSAL } from '../copy/marker.ts';
import { MARKER } from '../copy/tables.ts';
import { RETIRED } from '../team-tables.ts';
import { type Database, inTransaction, openPool } from './database.ts';
import { lookAtSchema } from './migrate.ts';
import { unusable } from './unusable.ts';

/** Counting the rows of a large table takes longer than any statement of the service may. */
const STATEMENT_MS = 3_600_000;
const NO_COUNTS = { teams: 0, workflows: 0, jobs: 0, records: 0, events: 0, webhooks: 0, deliveries: 0 };

export async function verifyDatabase(url: string): Promise<Inspection> {
  const { found: schema, newest } = await lookAtSchema(url);
  const mistakes: string[] = [];
  if (schema === 0) {
    mistakes.push('This is no database of flowhook: it has no tables');
    return { schema, newest, counts: NO_COUNTS, encryptionKey: null, mistakes };
  }
  if (schema > newest) {
    mistakes.push(
      `Its tables have version ${schema}, and this flowhook knows versions up to ${newest}: use the newer flowhook`,
    );
  }
  const pool = openPool({ url, size: 1, log: silentLogger, answerMs: STATEMENT_MS });
  try {
    const content = await inTransaction(pool, contentsOf, {
      isolation: 'repeatable read read only',
      statementMs: STATEMENT_MS,
    });
    return { schema, newest, ...content, mistakes: [...mistakes, ...content.mistakes] };
  } catch (error) {
    throw unusable(error);
  } finally {
    await pool.end();
  }
}

async function contentsOf(db: Database) {
  const noted = async (name: string) =>
    (await db.get<{ value: string }>('select value from instance where name = $1', name))?.value;
  const mistakes = (await noted(MARKER)) === undefined ? [] : [REFUSAL];
  const counts = await db.get<BackupCounts>(
    `select (select count(*) from team) as teams, (select count(*) from workflow) as workflows,
            (select count(*) from job) as jobs, (select count(*) from record) as records,
            (select count(*) from event) as events, (select count(*) from webhook) as webhooks,
            (select count(*) from delivery) as deliveries`,
  );
  mistakes.push(...(await halfVersions(db)));
  return { counts: counts ?? NO_COUNTS, encryptionKey: (await noted('encryption_key')) ?? null, mistakes };
}

/** Counts the records of all workflows in one statement, because the planner may not use the index for one workflow. */
async function halfVersions(db: Database): Promise<string[]> {
  const rows = await db.all<{ workflow: string; version: number; total: number; found: number }>(
    `select team.slug || '/' || workflow.id as workflow, current_version::integer as version,
            coalesce(version.total, 0)::integer as total, coalesce(counted.rows, 0)::integer as found
     from workflow
     join team on team.id = workflow.team_id and team.slug not like '${RETIRED}%'
     left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                      and version.number = current_version
     left join (select record.team_id, record.workflow_id, count(*) as rows
                from record join workflow as own on own.team_id = record.team_id and own.id = record.workflow_id
                where added_in <= own.current_version
                  and (removed_in is null or removed_in > own.current_version)
                group by record.team_id, record.workflow_id) as counted
            on counted.team_id = workflow.team_id and counted.workflow_id = workflow.id
     order by 1`,
  );
  return rows.filter(({ total, found }) => total !== found).map(halfVersion);
}
