/** Chores that go through a table in rounds, a bounded part per call; the same for both drivers. */

/**
 * Makes an operation that continues where its last call stopped, and starts over at the end of a round.
 *
 * @param start the cursor before the first row
 * @param step does one part after the cursor `after`; `next` is null at the end of a round. Its `done`, if it has one,
 *   counts; else the operation is `done` at the end of a round
 */
export function inRounds<Input extends { after: Cursor }, Cursor, Result extends { next: Cursor | null }>(
  start: Cursor,
  step: (input: Input) => Promise<Result>,
): (input: Omit<Input, 'after'>) => Promise<{ done: boolean } & Omit<Result, 'next'>> {
  let after = start;
  return async (input) => {
    const { next, ...result } = await step({ ...input, after } as Input);
    after = next ?? start;
    return { done: next === null, ...result };
  };
}
