/** A process that prunes a workflow in steps, and prints a line after each, so that a test can kill it in between. */
import { silentLogger } from '../../../src/observe/log.ts';
import { openStore } from '../../../src/store/open.ts';

const [url = '', teamId = '', workflowId = ''] = process.argv.slice(2);
const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
const retention = { keepVersions: 10, keepMs: Number.MAX_SAFE_INTEGER, graceMs: 0, limit: 50 };
let after: Awaited<ReturnType<typeof store.records.prune>>['next'];
for (let done = false; !done; ) {
  const step = await store.records.prune({ teamId, workflowId, ...retention, after });
  ({ done } = step);
  after = step.next;
  process.stdout.write('step\n');
}
await store.close();
