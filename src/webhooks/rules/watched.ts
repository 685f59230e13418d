/** What the thread shows while it evaluates, in memory that it shares with the main thread. */

/**
 * The places in the shared memory: how many evaluations were started, the number of the current one within its event, and
 * whether an evaluation is in progress.
 */
export const WATCHED = { begun: 0, examined: 1, isEvaluating: 2, length: 3 } as const;
