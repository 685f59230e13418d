/**
 * The program in the child process of an `http` source: reads the source and writes its records.
 *
 * File descriptors (see `launcher.ts`): 0 the input, 1 and 2 the log, 3 records as NDJSON, 4 the result, 5 the per-host
 * request limits of the server.
 */
import { Socket } from 'node:net';
import type { HttpSource } from '../../model/http-source.ts';
import { remoteTurns } from '../../net/host-turns-channel.ts';
import { readInput } from '../process/harness-input.ts';
import {
  createProgress,
  createWriter,
  endWhenStuck,
  writeLog,
  writeResult,
} from '../process/harness-output.ts';
import { createRedactor } from '../secrets.ts';
import { createOutbound, namedOrigins } from './outbound.ts';
import { outcomeOf, readSource } from './read-source.ts';

export interface HarnessInput {
  /** With secrets filled in. */
  source: HttpSource;
  /** The values of the secrets in the source, to mask them in the output. */
  secrets: string[];
  state: unknown;
  definitionHash: string;
  agent: string;
  /** The allowed addresses, in the syntax of FLOWHOOK_ALLOW_NETWORKS. */
  allowNetworks: string;
}

endWhenStuck('The source waits for something that can never happen');
run(readInput<HarnessInput>()).then(() => process.exit(0));

async function run(input: HarnessInput): Promise<void> {
  process.on('SIGTERM', () => process.exit(143));
  const progress = createProgress();
  const writer = createWriter();
  const reading = readSource(
    { ...input, redactor: createRedactor(input.secrets) },
    {
      dispatcher: await createOutbound({
        allowNetworks: input.allowNetworks,
        proxy: input.source.proxy,
        named: namedOrigins(input.source),
      }),
      turns: remoteTurns(new Socket({ fd: 5, readable: true, writable: true })),
      agent: input.agent,
      signal: new AbortController().signal,
      log: writeLog,
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
