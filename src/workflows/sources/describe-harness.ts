/**
 * The program that reads the settings of module workflows: imports each module in a child process and writes
 * down its `export const workflow`. One line per module says that its import begins, one what came of it, so
 * that a module that never returns can be named.
 */
import { readFileSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { notAFunction, usefulPart } from './module-harness.ts';

export interface DescribeInput {
  /** Full paths. */
  files: string[];
}

/** `settings` is JSON text: what `JSON.parse` of it gives is checked by `definition.ts`. */
export type DescribeLine =
  | { file: string; begins: true }
  | { file: string; settings: unknown }
  | { file: string; error: string };

const input = JSON.parse(readFileSync(0, 'utf8')) as DescribeInput;
// As when it runs.
delete process.env.NODE_COMPILE_CACHE;
for (const file of input.files) {
  tell({ file, begins: true });
  tell(await describe(file));
}
process.exit(0);

function tell(line: DescribeLine): void {
  writeSync(3, `${JSON.stringify(line)}\n`);
}

async function describe(file: string): Promise<DescribeLine> {
  try {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown; workflow?: unknown };
    if (typeof module.default !== 'function') return { file, error: notAFunction(module.default) };
    return { file, settings: asJson(module.workflow ?? {}) };
  } catch (error) {
    return { file, error: `The module cannot be imported: ${usefulPart(error)}` };
  }
}

/** Refuses what JSON would silently drop: a guard that vanished must not look like one that is on. */
function asJson(settings: unknown): unknown {
  return JSON.parse(
    JSON.stringify(settings, (key, value: unknown) => {
      if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
        throw new TypeError(`\`workflow.${key}\` is a ${typeof value}; settings are plain values`);
      }
      return value;
    }),
  );
}
