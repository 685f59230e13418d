/** The reference of all settings, made of the table. */

import type { NamedSetting } from '../../src/config/settings.ts';
import { settingsByGroup } from '../../src/config/settings.ts';
import { environmentName, flagName, holdsSecret } from '../../src/config/sources.ts';
import { table } from './table.ts';

const HEAD = `# Settings

Every setting: its names, its valid values and its default. Generated from \`src/config/settings.ts\`.

\`flowhook config print --show-origin\` prints the settings in effect on a machine and where each comes from;
\`flowhook config check\` validates them without starting anything. \`flowhook init\` writes a \`flowhook.yaml\` that lists them all.

A setting can be given in three places, and the first wins: a flag (\`--public-url\`), an environment variable
(\`FLOWHOOK_PUBLIC_URL\`; an empty one is ignored), and \`flowhook.yaml\` in the working directory (\`publicUrl: …\`).
Secrets have no flag, because others can read the command line of a process; a variable ending in \`_FILE\`, where one is
listed, names a file that holds the value. Paths are relative to the working directory. All mistakes are reported at once, and
nothing starts with one (exit code 2).
`;

const COLUMNS = ['Name', 'Must be', 'Default', 'What it is'];

export const settingsReference = [
  HEAD,
  ...settingsByGroup().map(
    ({ title, settings }) => `## ${title}\n\n${table(COLUMNS, settings.map(cells))}\n`,
  ),
].join('\n');

function cells(setting: NamedSetting): string[] {
  const variable = environmentName(setting.name);
  const names = [
    setting.name,
    ...(setting.secret === true ? [] : [flagName(setting.name)]),
    variable,
    ...(holdsSecret(setting) ? [`${variable}_FILE`] : []),
  ];
  return [
    names.map((name) => `\`${name}\``).join('<br>'),
    setting.expected,
    setting.default === undefined ? (setting.byDefault ?? 'none') : `\`${setting.default}\``,
    setting.sentence,
  ];
}
