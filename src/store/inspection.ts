/** Inspects a whole database: counts its content and finds problems. Used for backups and for databases in use. */
import type { BackupCounts, Inspection } from './backup-files.ts';
import { MARKER, refusalOf } from './copy/tables.ts';
import { newestSchema } from './migrations.ts';
import { RETIRED_SLUGS } from './operations/teams.ts';
import { both } from './sql.ts';

const NO_COUNTS = { teams: 0, workflows: 0, jobs: 0, records: 0, events: 0, webhooks: 0, deliveries: 0 };

/** This statement selects one row. Every version of the schema has the tables that it reads. */
export const CONTENTS = `
  select (select count(*) from team) as teams, (select count(*) from workflow) as workflows,
         (select count(*) from job) as jobs, (select count(*) from record) as records,
         (select count(*) from event) as events, (select count(*) from webhook) as webhooks,
         (select count(*) from delivery) as deliveries,
         (select value from instance where name = 'encryption_key') as "encryptionKey",
         (select value from instance where name = '${MARKER}') as marker`;

export interface Contents extends BackupCounts {
  encryptionKey: string | null;
  /** The value of the marker; null if there is none. */
  marker: string | null;
}

interface Version {
  /** `team/workflow` */
  workflow: string;
  version: number;
  total: number;
  found: number;
}

/**
 * Selects, for the current version of every workflow, how many records it should have and how many it has. Teams that
 * are being deleted are left out, because some of their rows are already gone. PostgreSQL counts the records of all
 * workflows in one pass, because the planner may not use the index to count those of a single workflow.
 */
export const VERSIONS = both(
  (pick) => `
  select team.slug || '/' || workflow.id as workflow, current_version as version,
         coalesce(version.total, 0) as total, ${pick({
           sqlite: `(select count(*) from record
                     where record.workflow = workflow.number and added_in <= current_version
                       and (removed_in is null or removed_in > current_version))`,
           postgres: 'coalesce(counted.rows, 0)',
         })} as found
  from workflow
  join team on team.id = workflow.team_id and team.slug not like '${RETIRED_SLUGS}'
  left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                   and version.number = current_version
  ${pick({
    sqlite: '',
    postgres: `
      left join (select record.team_id, record.workflow_id, count(*) as rows
                 from record join workflow as own on own.team_id = record.team_id and own.id = record.workflow_id
                 where added_in <= own.current_version
                   and (removed_in is null or removed_in > own.current_version)
                 group by record.team_id, record.workflow_id) as counted
             on counted.team_id = workflow.team_id and counted.workflow_id = workflow.id`,
  })}
  order by 1`,
);

/** Returns the inspection of a file whose tables cannot be read, or that is not a Flowhook database. */
export function unreadable(schema: number, ...mistakes: string[]): Inspection {
  return { schema, newest: newestSchema(), counts: NO_COUNTS, encryptionKey: null, mistakes };
}

/**
 * Returns the inspection of a readable database. `contents` and `versions` are the rows that `CONTENTS` and `VERSIONS`
 * select.
 */
export function inspectionOf(schema: number, contents: Contents, versions: readonly Version[]): Inspection {
  const { encryptionKey, marker, ...counts } = contents;
  const newest = newestSchema();
  const mistakes = versions
    .filter(({ total, found }) => total !== found)
    .map(
      ({ workflow, version, total, found }) =>
        `Version ${version} of workflow ${workflow} should have ${total} records, but has ${found}`,
    );
  if (marker !== null) mistakes.unshift(refusalOf(marker));
  if (schema > newest) {
    mistakes.unshift(
      `The database has schema version ${schema}, but this flowhook supports only versions up to ${newest}. Use a newer flowhook`,
    );
  }
  return { schema, newest, counts, encryptionKey, mistakes };
}
