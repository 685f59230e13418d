/** Reads and checks the settings. Nothing else reads the environment. */
import type { EffectiveSetting } from '../model/setting.ts';
import type { TracingSettings } from '../observe/tracing.ts';
import { maskedUrl } from '../std/masked-url.ts';
import { contradictions, type Derived, derive, shownValues } from './derive.ts';
import { effectiveSettings } from './effective.ts';
import { environmentName, holdsSecret } from './names.ts';
import { type NamedSetting, SETTINGS, type SettingName, type SettingValues } from './settings.ts';
import { collect, type Sources } from './sources.ts';
import { readTracing } from './tracing.ts';

/** A field for each row of the table, and what is derived from them. */
export interface Config extends Omit<SettingValues, keyof Derived | Renamed>, Derived {
  /** Every setting with its effective value and its origin, secrets masked. */
  settings: readonly EffectiveSetting[];
  /** Where traces are sent, by OpenTelemetry's own variables; null: tracing is off. */
  tracing: TracingSettings | null;
  /** The whole environment, for team secrets and the few variables that child processes inherit. */
  environment: ReadonlyMap<string, string>;
}

/** Rows whose derived field has another name. */
type Renamed = 'data' | 'database' | 'workflows' | 'logFormat';

/** Everything that is wrong with the settings. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** One sentence each, naming the flag, variable or file. */
  readonly mistakes: readonly string[];
  constructor(mistakes: readonly string[]) {
    super(['These settings are wrong:', ...mistakes].join('\n  '));
    this.mistakes = mistakes;
  }
}

/**
 * Reads the settings.
 *
 * @param flags the flags of the command line, by setting name
 * @throws ConfigError
 */
export function readConfig(
  flags: Sources['flags'],
  environment: NodeJS.ProcessEnv = process.env,
  directory: string = process.cwd(),
): Config {
  const mistakes: string[] = [];
  const found = collect({ flags, environment, directory }, mistakes);
  const wrong = new Set<SettingName>();
  const refuse = (name: SettingName, why: string) => {
    const { value, origin = environmentName(name) } = found.get(name) ?? {};
    const hidden = SETTINGS.some((setting) => setting.name === name && holdsSecret(setting));
    mistakes.push(`${origin} ${why}${hidden || value === undefined ? '' : `, found "${maskedUrl(value)}"`}`);
    wrong.add(name);
  };

  const values = Object.fromEntries(
    SETTINGS.map((setting) => {
      const written = found.get(setting.name)?.value;
      const value = written === undefined ? setting.absent : setting.read(written, directory);
      const isRefused = written !== undefined && value === undefined;
      if (isRefused) refuse(setting.name, setting.mistake?.(written) ?? `must be ${setting.expected}`);
      return [setting.name + (setting.unit ?? ''), isRefused ? initialOf(setting, directory) : value];
    }),
  ) as SettingValues;
  const derived = derive(values, (name) => (found.get(name)?.origin ?? 'default') !== 'default');
  // Without a valid database URL, contradictions with it cannot be checked.
  if (!wrong.has('database')) {
    for (const [name, expected] of contradictions(values, derived)) refuse(name, `must be ${expected}`);
  }
  const tracing = readTracing(environment, mistakes);
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return {
    ...values,
    ...derived,
    settings: effectiveSettings(found, shownValues(derived)),
    tracing,
    environment: new Map(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}

/** The default, so that the rest can still be checked after a mistake. */
function initialOf(setting: NamedSetting, directory: string): unknown {
  return setting.default === undefined ? setting.absent : setting.read(setting.default, directory);
}
