/**
 * A node that only looks for stale workflows, one per transaction, until it is killed: a program for tests. It begins when
 * it reads something from its standard input.
 *
 *     node mark-stale.ts DATABASE_URL
 */
import { once } from 'node:events';
import { silentLogger } from '../../../src/observe/log.ts';
import { openStore } from '../../../src/store/open.ts';
import { elapsed } from './crash.ts';

const store = await openStore(process.argv[2] ?? '', { publicUrl: () => '', log: silentLogger });
// The first write of a process on SQLite starts a thread.
await store.freshness.markStale({ teamId: 'none', limit: 1 });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
for (;;) {
  for (const { teamId } of await store.agenda.due({ item: 'fresh', until: store.now(), limit: 10 })) {
    await store.freshness.markStale({ teamId, limit: 1 });
  }
  // Otherwise SQLite is done before anybody can kill the node.
  await elapsed(3);
}
