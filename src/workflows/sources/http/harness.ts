/**
 * The program inside the child process of an `http` source: reads it and writes down its records.
 *
 * Descriptors: 0 the input, 1 and 2 the log, 3 records as NDJSON, 4 the result, 5 turns (see `child.ts`).
 */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { Socket } from 'node:net';
import type { HttpSource } from '../../../model/http-source.ts';
import { createProgress, createWriter, tellLog, writeResult } from '../harness-output.ts';

export interface HarnessInput {
  compileCache: string;
  /** With the secrets in it. */
  source: HttpSource;
  /** Those secrets alone: not to be told. */
  secrets: string[];
  state: unknown;
  definitionHash: string;
  agent: string;
  /** What may be connected to, as FLOWHOOK_ALLOW_NETWORKS. */
  allowNetworks: string;
}

/** What is left on the result pipe. */
export type HarnessResult =
  | { ok: true; state: unknown; unchanged: boolean }
  | { ok: false; reason: 'source' | 'guard' | 'error'; error: string };

if (import.meta.main) {
  const input = JSON.parse(readFileSync(0, 'utf8')) as HarnessInput;
  enableCompileCache(input.compileCache);
  await run(input);
  process.exit(0);
}

async function run(input: HarnessInput): Promise<void> {
  // Only now, so that the compile cache covers them.
  const [{ createOutbound, namedOrigins }, { readSource }, { remoteTurns }, { outcomeOf }, { createHidden }] =
    await Promise.all([
      import('./outbound.ts'),
      import('./read-source.ts'),
      import('../../../net/host-turns-channel.ts'),
      import('./outcome.ts'),
      import('./hidden.ts'),
    ]);
  const stopping = new AbortController();
  process.on('SIGTERM', () => process.exit(143));
  const progress = createProgress();
  const writer = createWriter();
  const reading = readSource(
    { ...input, hidden: createHidden(input.secrets) },
    {
      dispatcher: await createOutbound({
        allowNetworks: input.allowNetworks,
        proxy: input.source.proxy,
        named: namedOrigins(input.source),
      }),
      turns: remoteTurns(new Socket({ fd: 5, readable: true, writable: true })),
      agent: input.agent,
      signal: stopping.signal,
      log: tellLog,
      onPage: (pages, url) => progress.report({ pages, message: url }),
    },
  );
  const result = await outcomeOf(async () => {
    for (;;) {
      const next = await reading.next();
      if (next.done === true) return next.value;
      for (const line of next.value) await writer.write(line);
    }
  });
  await writer.flush();
  progress.flush();
  writeResult(result);
}
