/** Asks modules for their settings, in a child process: the server itself never runs a workflow's code. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEFAULT_LIMITS } from '../../model/workflow.ts';
import type { Logger } from '../../observe/log.ts';
import { startChild } from './child.ts';
import type { DescribeInput, DescribeLine } from './describe-harness.ts';
import { cleanEnvironment } from './environment.ts';

/** One module may take this long to import. */
const IMPORT_MS = 10_000;

const PROGRAM = fileURLToPath(new URL(`./describe-harness${extname(import.meta.url)}`, import.meta.url));

export interface DescribeOptions {
  directory: string;
  log: Logger;
  /** Gives up: nobody wants to know any more. */
  signal?: AbortSignal;
  importMs?: number;
}

/** The settings that a module exports (any JSON), or a sentence about why they cannot be read. */
export type Described = { settings: unknown } | { error: string };

/**
 * Imports modules one after the other, all in one child process; only when one of them never returns or ends
 * the process does another child go on with the rest.
 *
 * @param files full paths
 * @throws the signal's reason, once it is aborted
 */
export async function describeModules(
  files: readonly string[],
  options: DescribeOptions,
): Promise<Map<string, Described>> {
  const described = new Map<string, Described>();
  let rest = [...files];
  while (rest.length > 0) {
    options.signal?.throwIfAborted();
    const stuck = await describeInOneChild(rest, described, options);
    // Without a module to blame the child itself did not work, and another would not either.
    for (const file of stuck.file === undefined ? rest : [stuck.file]) {
      if (stuck.error !== undefined && !described.has(file)) described.set(file, { error: stuck.error });
    }
    rest = rest.filter((file) => !described.has(file));
  }
  return described;
}

async function describeInOneChild(
  files: readonly string[],
  described: Map<string, Described>,
  options: DescribeOptions,
): Promise<{ file?: string; error?: string }> {
  const input: DescribeInput = { files: [...files] };
  const child = await startChild({
    launch: () => ({ argv: [process.execPath, PROGRAM], environment: cleanEnvironment(new Map()) }),
    directory: options.directory,
    temporaryPrefix: 'flowhook-describe-',
    stdin: JSON.stringify(input),
    harness: true,
    limits: DEFAULT_LIMITS,
    secrets: new Map(),
    listener: { onLog() {}, onProgress() {} },
    log: options.log,
  });
  const limitMs = options.importMs ?? IMPORT_MS;
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill();
  }, limitMs);
  options.signal?.addEventListener('abort', child.kill, { once: true });
  let current: string | undefined;
  for await (const batch of child.batches) {
    for (const text of batch) {
      const line = JSON.parse(text) as DescribeLine;
      current = 'begins' in line ? line.file : undefined;
      if ('settings' in line) described.set(line.file, { settings: line.settings });
      if ('error' in line) described.set(line.file, { error: line.error });
    }
    timer.refresh();
  }
  const end = await child.end;
  clearTimeout(timer);
  options.signal?.removeEventListener('abort', child.kill);
  options.signal?.throwIfAborted();
  if (end.code === 0 && current === undefined) return {};
  const why = timedOut
    ? `did not end within ${limitMs / 1000} s. The top level of a module must not do the work: the exported function does`
    : `ended the process (${end.signal ?? `exit code ${end.code}`}). The top level of a module must only define things`;
  const words = end.tail === '' ? '' : `:\n${end.tail}`;
  return {
    ...(current === undefined ? {} : { file: current }),
    error: `Importing the module ${why}${words}`,
  };
}
