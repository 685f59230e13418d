/** Leaves one out. */
import { test } from 'node:test';

test.skip('does something', () => {});
