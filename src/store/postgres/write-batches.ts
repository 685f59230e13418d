/**
 * Runs writes in batches. Calls of one team that wait at the same moment share a transaction and its commit, the lock
 * for numbering the team's events, and statements.
 *
 *     call ──▶ the team's queue ──▶ one transaction for all that wait ──▶ results
 *                 │                    ├── rows of a call are locked: this call again, alone
 *                 │                    └── a call failed: each call again, alone, so that none fails the others
 *                 └── no other call waits: a transaction of its own
 */

import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../../model/error.ts';
import { type Begins, type Operation, teamOf } from '../operation.ts';
import { type JobRow, OF_JOB, UNFINISHED, WORKFLOW, type WorkflowRow } from '../rows.ts';
import type { Locked, Tx } from '../transaction.ts';
import { committed, performed, type TeamTurns, type Writing } from './write.ts';

/** Maximum number of calls per transaction. Short calls run concurrently within it, long calls one at a time. */
const MAX_SHORT = 64;
const MAX_LONG = 8;

/**
 * Maximum number of transactions that one queue runs at the same time. A second transaction starts when enough calls
 * wait to fill half of it. With fewer calls, two half-sized transactions take longer than one transaction.
 */
const AT_ONCE = 2;

/**
 * Pause after a batch, in milliseconds. After a batch, its callers make their next calls one by one. Without a pause,
 * the first of these calls would get a transaction of its own, and all others would wait for its commit.
 */
const GATHER_MS = 2;

interface Call {
  operation: Operation<Tx, unknown, unknown>;
  input: unknown;
  /** Undefined if the call needs a transaction of its own. */
  begins: Begins | undefined;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** A queue of one team. Each team has a queue for short calls and a queue for long calls. */
interface Line {
  name: string;
  teamId: string;
  isLong: boolean;
  /** Oldest first. */
  waiting: Set<Call>;
  running: number;
}

export function writingInBatches(options: Writing & { turns: TeamTurns }) {
  const { turns } = options;
  const lines = new Map<string, Line>();

  return (operation: Call['operation']) =>
    (input: unknown): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const line = lineOf(teamOf(input) ?? '', operation.isLong === true);
        const begins = (operation.begins ?? rowsOf)(input as never);
        line.waiting.add({ operation, input, begins, resolve, reject });
        start(line);
      });

  function lineOf(teamId: string, isLong: boolean): Line {
    const name = `${teamId} ${isLong}`;
    const line = lines.get(name) ?? { name, teamId, isLong, waiting: new Set(), running: 0 };
    lines.set(name, line);
    return line;
  }

  /** Starts a transaction, if the limits allow another one. */
  function start(line: Line): void {
    const { name, teamId, waiting, running } = line;
    if (waiting.size === 0 && running === 0) lines.delete(name);
    const enough = running === 0 ? 1 : sizeOf(line) / 2;
    if (running === AT_ONCE || waiting.size < enough) return;
    line.running += 1;
    turns
      .run(teamId, () => run(line), { ahead: true })
      .then(
        (calls) => (calls > 1 ? pause(GATHER_MS) : undefined),
        (error) => {
          // No connection became free in time.
          for (const call of waiting) call.reject(error);
          waiting.clear();
        },
      )
      .finally(() => {
        line.running -= 1;
        start(line);
      });
  }

  /** Returns the number of calls. */
  async function run(line: Line): Promise<number> {
    const calls = take(line);
    const [first] = calls;
    if (first === undefined) return 0;
    if (calls.length === 1) await alone(first);
    else await together(line, calls);
    return calls.length;
  }

  function alone({ operation, input, resolve, reject }: Call): Promise<void> {
    const perform = (tx: Tx) => performed(tx, operation, input);
    return committed(options, perform, { prepares: !operation.isLong }).then(resolve, reject);
  }

  async function together({ teamId, isLong }: Line, calls: readonly Call[]): Promise<void> {
    let isDone = false;
    const perform = async (tx: Tx) => {
      isDone = false;
      const locked = await lockCalls(
        tx,
        teamId,
        calls.map(({ begins }) => begins ?? {}),
      );
      const one = ({ operation, input }: Call, at: number) => {
        const of = locked[at];
        return of === undefined ? undefined : performed({ ...tx, locked: of }, operation, input);
      };
      const results = isLong ? await inOrder(calls, one) : await Promise.all(calls.map(one));
      isDone = true;
      return { locked, results };
    };
    try {
      const { locked, results } = await committed(options, perform, { prepares: !isLong });
      for (const [at, call] of calls.entries()) {
        if (locked[at] === undefined) apart(teamId, call);
        else call.resolve(results[at]);
      }
    } catch (error) {
      const isUnreachable = error instanceof Problem && error.code === 'database_unavailable';
      for (const call of calls) {
        // If every operation has run, it was the commit that failed. The database may still have committed, so no call
        // is repeated.
        if (isDone || isUnreachable) call.reject(error);
        else apart(teamId, call);
      }
    }
  }

  /**
   * Runs a call alone, in a turn of its own, because the turn of its batch is over. The batch does not wait for the
   * call.
   */
  function apart(teamId: string, call: Call): void {
    turns.run(teamId, () => alone(call)).catch(call.reject);
  }
}

function sizeOf({ isLong }: Line): number {
  return isLong ? MAX_LONG : MAX_SHORT;
}

/** Selects the calls of the next transaction: the oldest call, and all calls that can share a transaction with it. */
function take(line: Line): Call[] {
  const calls: Call[] = [];
  const taken = new Set<string>();
  for (const call of line.waiting) {
    if (calls.length === sizeOf(line)) break;
    const { begins } = call;
    if (begins === undefined && calls.length > 0) continue;
    const row = begins?.workflowId ?? begins?.jobId;
    if (row !== undefined && taken.has(row)) continue;
    if (row !== undefined) taken.add(row);
    calls.push(call);
    if (begins === undefined) break;
  }
  for (const call of calls) line.waiting.delete(call);
  return calls;
}

/** Names the rows that a call locks first, based on the fields of its input. */
function rowsOf(input: { workflowId?: string; held?: { jobId: string } }): Begins {
  return input.held === undefined ? { workflowId: input.workflowId } : { jobId: input.held.jobId };
}

async function inOrder<Item, Result>(
  items: readonly Item[],
  perform: (item: Item, at: number) => Promise<Result> | undefined,
): Promise<(Result | undefined)[]> {
  const results: (Result | undefined)[] = [];
  for (const [at, item] of items.entries()) results.push(await perform(item, at));
  return results;
}

/**
 * Locks and reads the rows that the calls of a batch start with. Three statements serve the whole batch, where each
 * call would need two statements of its own. Rows that other transactions have locked are skipped, so that a batch
 * never waits and two batches cannot block each other. A call whose rows were skipped then waits alone.
 *
 * @returns the locked rows of each call, in order. Undefined for a call whose rows do not exist or are locked by
 *   others. Of several calls for one workflow only the first gets rows, because it may change what later calls would
 *   read
 */
async function lockCalls(tx: Tx, teamId: string, calls: readonly Begins[]): Promise<(Locked | undefined)[]> {
  const jobIds = calls.flatMap(({ jobId }) => jobId ?? []);
  const workflowIds = calls.flatMap(({ workflowId }) => workflowId ?? []);
  const [workflows, jobs, unfinished] = await Promise.all([
    jobIds.length + workflowIds.length === 0
      ? []
      : tx.db.all<WorkflowRow>(WORKFLOWS, teamId, workflowIds, jobIds),
    jobIds.length === 0 ? [] : tx.db.all<JobRow>(JOBS, teamId, jobIds),
    workflowIds.length === 0 ? [] : tx.db.all<JobRow>(UNFINISHED_JOBS, teamId, workflowIds),
  ]);
  const left = new Map(workflows.map((row) => [row.id, row]));
  const jobsById = new Map(jobs.map((row) => [row.id, row]));
  const unfinishedOf = Map.groupBy(unfinished, (row) => row.workflowId);
  return calls.map(({ workflowId, jobId }) => {
    if (workflowId === undefined && jobId === undefined) return {};
    const job = jobsById.get(jobId ?? '');
    const id = workflowId ?? job?.workflowId ?? '';
    const workflow = left.get(id);
    if (workflow === undefined) return undefined;
    left.delete(id);
    return job === undefined ? { workflow, unfinished: unfinishedOf.get(id) ?? [] } : { workflow, job };
  });
}

// `array(…)` shows the planner a list of ids, so that it uses the primary key.
const WORKFLOWS = `
  select ${WORKFLOW} from workflow
  where team_id = $1 and id = any(array(
    select unnest($2::text[]) union all
    select job.workflow_id from unnest($3::text[]) as named (id)
    cross join lateral (select * from job where job.team_id = $1 and job.id = named.id limit 1) job
  ))
  for update skip locked`;

// Each id is looked up separately. With a list, a prepared plan might read all unfinished jobs of the team.
const JOBS = `
  select ${OF_JOB} from unnest($2::text[]) as named (id)
  cross join lateral (
    select * from job where job.team_id = $1 and job.id = named.id limit 1 for update skip locked
  ) job`;

const UNFINISHED_JOBS = `
  select ${OF_JOB} from unnest($2::text[]) as named (id)
  cross join lateral (
    select * from job where job.team_id = $1 and job.workflow_id = named.id and ${UNFINISHED} order by slot limit 2
  ) job`;
