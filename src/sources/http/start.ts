/**
 * Starts an `http` source. Its program is our own, but runs in a child process, so that a crash or a hang affects only
 * one job.
 */
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { HttpSource } from '../../model/http-source.ts';
import { commandOf } from '../../std/own-files.ts';
import { USER_AGENT } from '../../std/version.ts';
import { type ChildEnd, startChild } from '../process/child.ts';
import { cleanEnvironment, runEnvironment } from '../process/environment.ts';
import type { Run, RunEnd, RunInput } from '../run.ts';
import { childOptions, failed, runOf, shareTurns } from '../run.ts';
import { createMask, fillSecrets, secretsIn } from '../secrets.ts';
import type { HarnessInput } from './harness.ts';
import type { HarnessResult } from './read-source.ts';

const HARNESS_ARGV: readonly string[] = commandOf('http-harness');
/**
 * Increment this number when a new version of Flowhook reads other records from the same response. A new number
 * invalidates the stored cache validators.
 */
const FORMAT = 3;

/**
 * Starts the source. Secrets are filled in here, in the server's process, so that the child gets only the secrets that
 * its definition uses.
 */
export async function startHttp(input: RunInput, source: HttpSource): Promise<Run> {
  const { key, mode } = input.definition;
  const harnessInput: HarnessInput = {
    source: fillSecrets(source, input),
    secrets: secretsIn(source, input.secrets),
    // All values are text, so parsing loses nothing.
    state: input.state === null ? null : JSON.parse(input.state),
    definitionHash: createHash('sha256')
      .update(JSON.stringify([FORMAT, source, key, mode]))
      .digest('hex'),
    agent: USER_AGENT,
    allowNetworks: input.fetchPolicy?.text ?? 'none',
  };
  const child = await startChild({
    argv: HARNESS_ARGV,
    environment: {
      ...cleanEnvironment(input.environment, input.runAs),
      ...authorities(input.environment),
    },
    runEnvironment: runEnvironment(input),
    preparable: true,
    directory: tmpdir(),
    stdin: JSON.stringify(harnessInput),
    harness: true,
    channel: shareTurns(input.team, { bindsOthers: true }),
    ...childOptions(input),
  });
  const { clean } = createMask(input.secrets);
  return runOf(child, 'The HTTP source', (end) => resultOf(end, clean));
}

function resultOf(end: ChildEnd, clean: (text: string) => string): RunEnd {
  if (end.result === undefined) return failed('The state of the source is larger than 1 MiB', end);
  if (end.result === '') return failed('The HTTP source ended before it had read everything', end);
  const result = JSON.parse(end.result) as HarnessResult;
  return result.ok
    ? { ...result, state: JSON.stringify(result.state) }
    : { ...result, error: clean(result.error) };
}

/** Returns the environment variables that add certificate authorities to those built into Node. */
function authorities(environment: ReadonlyMap<string, string>): Record<string, string> {
  const names = ['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];
  return Object.fromEntries([...environment].filter(([name]) => names.includes(name)));
}
