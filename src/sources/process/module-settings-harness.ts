/**
 * The program in the child process of `module-settings.ts`: imports each module and writes its `export const workflow`
 * to descriptor 3. It writes one line before each import and one after it, so that a module that hangs can be named.
 */
import { readFileSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { notAFunction, usefulPart } from './module-errors.ts';

export interface SettingsInput {
  /** Absolute paths. */
  files: string[];
}

/** One line of output. `definition.ts` checks the settings. */
export type SettingsLine =
  | { file: string; begins: true }
  | { file: string; settings: unknown }
  | { file: string; error: string };

const input = JSON.parse(readFileSync(0, 'utf8')) as SettingsInput;
// As in module-harness.ts: modules see the same environment here as in a run.
delete process.env.NODE_COMPILE_CACHE;
for (const file of input.files) {
  tell({ file, begins: true });
  tell(await describe(file));
}
process.exit(0);

function tell(line: SettingsLine): void {
  writeSync(3, `${JSON.stringify(line)}\n`);
}

async function describe(file: string): Promise<SettingsLine> {
  try {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown; workflow?: unknown };
    if (typeof module.default !== 'function') return { file, error: notAFunction(module.default) };
    return { file, settings: asJson(module.workflow ?? {}) };
  } catch (error) {
    return { file, error: `The module cannot be imported: ${usefulPart(error)}` };
  }
}

/** Refuses values that JSON would silently drop: a guard that got lost must not look as if it were on. */
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
