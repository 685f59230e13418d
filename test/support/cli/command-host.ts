/**
 * The process in which `runCommand` runs commands, one at a time, like `bin/flowhook.js`. Each command has its own
 * working directory, environment, standard input and exit code. It writes to the real streams, and `END` follows on
 * both.
 */
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { main } from '../../../src/main.ts';
import { keptCode } from '../run/kept-code.ts';
import { type CommandCall, END } from './commands.ts';

/** How long resources that a command leaves open may take to close by themselves. */
const LINGER_MS = 10_000;
const LOOK_MS = 5;

process.on('message', async (call: CommandCall) => {
  process.chdir(call.directory);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, call.environment, keptCode);
  const stdin = Readable.from(call.input === '' ? [] : [Buffer.from(call.input)], { objectMode: false });
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  passForTerminal(call.terminal);
  await main([process.execPath, 'flowhook', ...call.args]);
  const code = process.exitCode ?? 0;
  process.exitCode = 0;
  process.stdout.removeAllListeners('error').write(END);
  process.stderr.write(END);
  process.send?.({ code, left: await openResources() });
});
process.once('disconnect', () => process.exit());
// Resources that are open without a command.
const own = process.getActiveResourcesInfo().length;
process.send?.('ready');

function passForTerminal(terminal: CommandCall['terminal']): void {
  const isTTY = terminal === null ? undefined : true;
  for (const stream of [process.stdin, process.stdout, process.stderr]) {
    Object.assign(stream, { isTTY, columns: terminal?.columns });
  }
}

/** Resources that the command has not closed and that would keep its process alive. */
async function openResources(): Promise<string[]> {
  const until = performance.now() + LINGER_MS;
  for (;;) {
    const active = process.getActiveResourcesInfo();
    if (active.length <= own) return [];
    if (performance.now() > until) return active;
    await pause(LOOK_MS);
  }
}
