/**
 * Stops what a failed test has left running when the tests of its file have ended. Otherwise the file, and `npm test`,
 * would never end.
 */
import { after } from 'node:test';

const stops = new Set<() => unknown>();

// Registered at the root, for all tests of the file. Scripts that are not tests end by themselves.
if (process.env.NODE_TEST_CONTEXT !== undefined) {
  after(async () => {
    for (const stop of [...stops].reverse()) await stop();
  });
}

/** Calls `stop` at the end of the file, last registered first. Calling it after a normal stop must be harmless. */
export function atEnd(stop: () => unknown): void {
  stops.add(stop);
}
