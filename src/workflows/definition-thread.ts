/** The thread that checks definitions: one after the other, as `definition-checks.ts` sends them. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { type Checked, checkDefinition, type ToCheck } from './definition-check.ts';

/** `ready` comes first, once; then an answer to each definition. */
export type FromCheck = { ready: true } | { checked: Checked } | { failed: string };

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const tell = (message: FromCheck) => port.postMessage(message);
  port.on('message', (given: ToCheck) => {
    try {
      tell({ checked: checkDefinition(given) });
    } catch (error) {
      tell({ failed: (error as Error).stack ?? String(error) });
    }
  });
  tell({ ready: true });
}
