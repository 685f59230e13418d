/**
 * The process in which `runCommand` runs commands, one after the other, as `bin/flowhook.js` runs one. A command's own
 * are its working directory, environment, standard input and exit code; it writes to the real streams, and `END`
 * follows on both.
 */
import { enableCompileCache } from 'node:module';
import { Readable } from 'node:stream';
import { type CommandCall, END } from './commands.ts';

// As bin/flowhook.js does, before the program is loaded.
const { directory } = enableCompileCache();
const compileCache = directory === undefined ? {} : { NODE_COMPILE_CACHE: directory };
const { main } = await import('../../src/main.ts');

process.on('message', async (call: CommandCall) => {
  process.chdir(call.directory);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, call.environment, compileCache);
  const stdin = Readable.from(call.input === '' ? [] : [Buffer.from(call.input)], { objectMode: false });
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  await main([process.execPath, 'flowhook', ...call.args]);
  const code = process.exitCode ?? 0;
  process.exitCode = 0;
  process.stdout.removeAllListeners('error').write(END);
  process.stderr.write(END);
  process.send?.({ code });
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
