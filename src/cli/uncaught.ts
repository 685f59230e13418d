/** Uncaught exceptions of a server: one last line in the log, and an exit code that makes a supervisor restart it. */
import { writeSync } from 'node:fs';

const WHAT_TO_DO =
  'nothing that was acknowledged is lost, and what was under way is taken up at the next start. ' +
  'Let a supervisor start it again (`restart: on-failure`), and report this line if it comes back';

/** Ends the process with exit code 1 at an uncaught exception. */
export function exitOnUncaught({ pretty }: { pretty: boolean }): void {
  process.on('uncaughtException', (error: unknown) => {
    const err = error instanceof Error ? error : new Error(String(error));
    // Synchronously: the process ends right after.
    try {
      writeSync(2, pretty ? forPeople(err) : forPrograms(err));
    } catch {
      // Standard error is closed.
    }
    process.exit(1);
  });
}

function forPeople({ stack, message }: Error): string {
  return `${stack ?? message}\nfatal: flowhook has ended (${message}): ${WHAT_TO_DO}\n`;
}

function forPrograms({ name, message, stack }: Error): string {
  const line = {
    level: 'fatal',
    time: new Date().toISOString(),
    err: { type: name, message, stack },
    msg: `service.crashed: ${WHAT_TO_DO}`,
  };
  return `${JSON.stringify(line)}\n`;
}
