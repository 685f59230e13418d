/** Waits and hopes. */
import { test } from 'node:test';

test('waits', () => new Promise((resolve) => setTimeout(resolve, 500)));
