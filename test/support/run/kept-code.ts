/** Where children of tests find the code that was compiled before: `test/run.ts` says where it is kept. */
const { NODE_COMPILE_CACHE } = process.env;

/** A part of an environment; empty outside of `npm test`. A process with a home of its own would compile everything. */
export const keptCode: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
