/**
 * What a test has started and a failure keeps it from stopping would keep its file from ending, and so all of `npm test`:
 * it is stopped when the tests of the file are over.
 */
import { after } from 'node:test';

const stops = new Set<() => unknown>();

// At the root, whichever test registers something. Scripts that are no tests end by themselves.
if (process.env.NODE_TEST_CONTEXT !== undefined) {
  after(async () => {
    for (const stop of [...stops].reverse()) await stop();
  });
}

/** Calls this at the end of the file, the last registered first. It must be harmless after an ordinary stop. */
export function atEnd(stop: () => unknown): void {
  stops.add(stop);
}
