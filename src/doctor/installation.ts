/** Examines an installation from outside, also while a server runs on it, with its database open meanwhile. */
import type { Examination } from '../model/finding.ts';
import { createResolver } from '../net/resolver.ts';
import type { Check } from './check.ts';
import { CHECKS } from './checks.ts';
import { examine } from './examine.ts';
import { isServed, openDatabase } from './open-database.ts';
import type { ExaminedSettings, Subject } from './subject.ts';

/**
 * @param input.settings the settings, or everything that is wrong with them, which becomes a finding
 * @param input.doubts what may be a mistake in them: sentences
 * @param input.online URLs that may be requested; null: no request may leave this machine
 */
export async function examineInstallation(
  input: {
    settings: ExaminedSettings | { mistakes: readonly string[] };
    doubts: readonly string[];
    online: readonly string[] | null;
    isFull: boolean;
  },
  options: { checks?: readonly Check[]; onBegin?: (check: Check) => void } = {},
): Promise<Examination> {
  const { checks = CHECKS, ...others } = options;
  const subject = await subjectOf(input);
  try {
    return await examine(subject, checks, others);
  } finally {
    await subject.database.store?.close();
  }
}

async function subjectOf({
  settings,
  ...input
}: Parameters<typeof examineInstallation>[0]): Promise<Subject> {
  const common = { ...input, node: undefined, resolver: createResolver(), clock: Date.now };
  if ('mistakes' in settings) {
    const database = { store: undefined, schema: undefined, mistake: undefined, without: undefined };
    return { ...common, settings: undefined, mistakes: settings.mistakes, database, isServed: null };
  }
  // Before this process opens the database itself.
  const served = await isServed(settings);
  return { ...common, settings, mistakes: [], isServed: served, database: await openDatabase(settings) };
}
