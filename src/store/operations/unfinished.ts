/**
 * The condition of the index `job_slot`: only statements with this text use it. The planner believes that an index of
 * unfinished jobs is small, but beside a transaction that is held open it has entries of all jobs since; claims would
 * scan it from end to end.
 */
export const UNFINISHED = `state in ('queued', 'running', 'retrying') and attempt >= 0`;
