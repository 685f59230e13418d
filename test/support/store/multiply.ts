/** Fills a database with the history of many workflows, by copying rows of the service with SQL. */
import { firstIdAt } from '../../../src/std/id.ts';

/** The size of the history. Jobs and deliveries are distributed evenly over the workflows. */
export interface Past {
  workflows: number;
  /** One per workflow. */
  webhooks: number;
  /** Finished jobs, each with three events. */
  jobs: number;
  /** Successful deliveries, each with one attempt. */
  deliveries: number;
  /** Other teams that do nothing, each with a workflow and a webhook (default: none). */
  teams?: number;
}

const DAY_MS = 24 * 3_600_000;
const EVENTS_OF_A_JOB = 3;
/** Rows per transaction, so that a server that uses the database can write in between. */
const AT_ONCE = 20_000;

/**
 * @param rows runs a statement with `?` and returns its rows
 * @param input.model a workflow with one finished job, which was delivered to its only webhook
 */
export async function multiply(
  rows: (sql: string, values: (string | number)[]) => Promise<Record<string, unknown>[]>,
  { past, model }: { past: Past; model: { teamId: string; workflowId: string } },
): Promise<void> {
  const { teamId, workflowId } = model;
  const { workflows, webhooks, jobs, deliveries, teams = 0 } = past;
  const madeAt = Date.now() - DAY_MS;
  const id = (prefix: string, n: string) =>
    `'${firstIdAt(prefix, madeAt).slice(0, -10)}' || cast(1000000000 + ${n} as text)`;
  const one = async (sql: string, ...values: (string | number)[]) => {
    const [row] = await rows(sql, values);
    if (row === undefined) throw new Error(`There is no row to copy: ${sql}`);
    return row;
  };
  const ofTeam = 'team_id = ?';
  const { sequence: last } = (await one(
    `select max(sequence) as sequence from event where ${ofTeam}`,
    teamId,
  )) as { sequence: number | string };
  const owner = (n: string) => `'past-' || cast(${n} % ${workflows} + 1 as text)`;
  const workflow = await one(`select * from workflow where ${ofTeam} and id = ?`, teamId, workflowId);
  const webhook = await one(`select * from webhook where ${ofTeam} and workflow_id = ?`, teamId, workflowId);
  const copies: {
    table: string;
    model: Record<string, unknown>;
    count: number;
    changed: Record<string, string>;
  }[] = [
    {
      table: 'workflow',
      model: { ...workflow },
      count: workflows,
      // Only SQLite numbers workflows.
      changed: { id: `'past-' || cast(n as text)`, ...('number' in workflow && { number: 'n + 1000000' }) },
    },
    {
      table: 'version',
      model: await one(`select * from version where ${ofTeam} and workflow_id = ?`, teamId, workflowId),
      count: workflows,
      changed: { workflow_id: `'past-' || cast(n as text)` },
    },
    {
      table: 'webhook',
      model: { ...webhook },
      count: webhooks,
      changed: { id: id('wh', '(n - 1)'), workflow_id: owner('(n - 1)') },
    },
    {
      table: 'job',
      model: await one(`select * from job where ${ofTeam} and workflow_id = ?`, teamId, workflowId),
      count: jobs,
      changed: { id: id('job', '(n - 1)'), workflow_id: owner('(n - 1)') },
    },
    {
      table: 'event',
      model: await one(
        `select * from event where ${ofTeam} and type = 'workflow_finished' order by sequence limit 1`,
        teamId,
      ),
      count: jobs * EVENTS_OF_A_JOB,
      changed: {
        id: id('evt', 'n'),
        sequence: `n + ${last}`,
        workflow_id: owner(`((n - 1) / ${EVENTS_OF_A_JOB})`),
        job_id: id('job', `((n - 1) / ${EVENTS_OF_A_JOB})`),
      },
    },
    {
      table: 'delivery',
      model: await one(`select * from delivery where ${ofTeam} and state = 'delivered' limit 1`, teamId),
      count: deliveries,
      changed: {
        id: id('dlv', 'n'),
        webhook_id: id('wh', `(n % ${webhooks})`),
        event_sequence: `n % ${jobs * EVENTS_OF_A_JOB} + ${last} + 1`,
      },
    },
    {
      table: 'attempt',
      model: await one(`select * from attempt where ${ofTeam} limit 1`, teamId),
      count: deliveries,
      changed: { delivery_id: id('dlv', 'n') },
    },
    {
      table: 'team',
      model: await one('select * from team where id = ?', teamId),
      count: teams,
      changed: {
        id: id('team', 'n'),
        slug: `'idle-' || cast(n as text)`,
        jobs_at: 'cast(null as bigint)',
        lanes_at: 'cast(null as bigint)',
        usage_at: 'cast(null as bigint)',
        prune_at: 'cast(null as bigint)',
      },
    },
    {
      table: 'workflow',
      model: { ...workflow },
      count: teams,
      changed: { team_id: id('team', 'n'), ...('number' in workflow && { number: 'n + 2000000' }) },
    },
    { table: 'webhook', model: { ...webhook }, count: teams, changed: { team_id: id('team', 'n') } },
  ];
  for (const { table, model: row, count, changed } of copies) {
    // The copies are dated yesterday, like all of the history. Their usage counts as counted already, and is not
    // counted again.
    const times = Object.keys(row).filter((column) => /^(created|started|finished)_at$/.test(column));
    for (const column of times) if (row[column] !== null) row[column] = Number(row[column]) - DAY_MS;
    const columns = Object.keys(row);
    const kept = columns.filter((column) => !(column in changed) && row[column] !== null);
    const values = kept.map((column) => row[column] as string | number);
    const written = [...kept, ...Object.keys(changed)];
    for (let from = 1; from <= count; from += AT_ONCE) {
      const to = Math.min(count, from + AT_ONCE - 1);
      await rows(
        `with recursive copies (n) as (select ${from} union all select n + 1 from copies where n < ${to})
         insert into ${table} (${written.join(', ')})
         select ${[...kept.map((column) => castTo(row[column])), ...Object.values(changed)].join(', ')} from copies`,
        values,
      );
    }
  }
  await rows(
    `insert into usage_place (team_id, sequence, attempts_until)
     select team_id, max(sequence), ${Date.now() - DAY_MS} from event where ${ofTeam} group by team_id
     on conflict (team_id) do update set sequence = excluded.sequence, attempts_until = excluded.attempts_until`,
    [teamId],
  );
}

/** Numbers the parameters of a statement, as PostgreSQL needs them. */
export function numbered(sql: string): string {
  let place = 0;
  return sql.replaceAll('?', () => {
    place += 1;
    return `$${place}`;
  });
}

/** PostgreSQL cannot infer the type of a `?` in a list of columns. */
function castTo(value: unknown): string {
  return typeof value === 'number' ? 'cast(? as bigint)' : 'cast(? as text)';
}
