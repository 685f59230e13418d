/**
 * Jobs that have not ended, as the index `job_slot` has them: it is for statements that say this and no other. The
 * planner takes every index over what has not ended for one of few rows, and beside a transaction that is held open
 * this one holds all jobs that there have been since; claims would read it from end to end.
 */
export const UNFINISHED = `state in ('queued', 'running', 'retrying') and attempt >= 0`;
