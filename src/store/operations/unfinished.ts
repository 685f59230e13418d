/**
 * The condition of the index `job_slot`: only statements with this text use it. SQLite's index asks for its first part,
 * PostgreSQL's for the others: its planner believes that an index of unfinished jobs is small, but beside a transaction
 * that is held open it has entries of all jobs since; claims would scan it from end to end. SQLite's would rather read
 * all jobs of a team: name the index, as `from job /* use job_slot *\/`.
 */
import { Part } from '../sql.ts';
export const UNFINISHED = new Part(
  `finished_at is null and state in ('queued', 'running', 'retrying') and attempt >= 0`,
);
