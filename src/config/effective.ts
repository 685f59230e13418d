/** Lists every setting with its effective value and its origin. */
import type { EffectiveSetting } from '../model/setting.ts';
import { environmentName } from './names.ts';
import { SETTINGS, type SettingName } from './settings.ts';
import type { Found } from './sources.ts';

/** Shown in place of a secret that is set. */
const MASKED = '***';

/** @param shown values that are not shown as they were written */
export function effectiveSettings(
  found: ReadonlyMap<SettingName, Found>,
  shown: Partial<Record<SettingName, string | undefined>>,
): EffectiveSetting[] {
  return SETTINGS.map(({ name, sentence, secret }) => {
    const { value, origin: from = 'default' } = found.get(name) ?? {};
    const origin = originOf(from);
    return {
      name,
      variable: environmentName(name),
      value: secret === true && value !== undefined ? MASKED : (shown[name] ?? value ?? null),
      origin,
      from: origin === 'default' ? null : from,
      sentence,
    };
  });
}

function originOf(from: string): EffectiveSetting['origin'] {
  if (from === 'default') return 'default';
  if (from.startsWith('--')) return 'flag';
  return from.startsWith('FLOWHOOK_') ? 'environment' : 'file';
}
