/** The reference of all settings, made of the table. */
import { settingsByGroup } from '../../src/config/groups.ts';
import { environmentName, flagName, holdsSecret } from '../../src/config/names.ts';
import type { NamedSetting } from '../../src/config/settings.ts';
import { table } from './table.ts';

const HEAD = `# Settings

Every setting: its names, what it must be, and what holds when nobody sets it. Made of \`src/config/settings.ts\`.

What holds on a machine, and where it comes from, is told by
\`flowhook config print --show-origin\`; what is wrong with it, without starting anything, by \`flowhook config check\`.
\`flowhook init\` writes a \`flowhook.yaml\` with all of them.

A setting has one name in three places, of which the first wins: a flag (\`--public-url\`), a variable in the environment
(\`FLOWHOOK_PUBLIC_URL\`; an empty one counts as none), and \`flowhook.yaml\` in the working directory (\`publicUrl: …\`).
Secrets have no flag, because the command line of a process can be read by others; where a variable ending in
\`_FILE\` is named as well, it names a file that holds the value. Paths are relative to the working directory.
All mistakes are told at once, and nothing starts with one (exit code 2).
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
