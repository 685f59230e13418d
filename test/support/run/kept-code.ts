/** The compile cache for child processes of tests. `test/run.ts` sets its directory. */
const { NODE_COMPILE_CACHE } = process.env;

/** Environment variables; none outside of `npm test`. Processes with their own HOME would otherwise compile everything. */
export const keptCode: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
