/** The reference of all settings, made of the table. Run as a script it prints the page: `npm run reference`. */
import { settingsByGroup } from './groups.ts';
import { environmentName, flagName, holdsSecret } from './names.ts';
import type { NamedSetting } from './settings.ts';

const HEAD = `# Settings

Made of \`src/config/settings.ts\` by \`npm run reference\`. What holds on a machine, and where it comes from, is told by
\`flowhook config print --show-origin\`; what is wrong with it, without starting anything, by \`flowhook config check\`.
\`flowhook init\` writes a \`flowhook.yaml\` with all of them.

A setting has one name in three places, of which the first wins: a flag (\`--public-url\`), a variable in the environment
(\`FLOWHOOK_PUBLIC_URL\`; an empty one counts as none), and \`flowhook.yaml\` in the working directory (\`publicUrl: …\`).
Secrets have no flag, because the command line of a process can be read by others; where a variable ending in
\`_FILE\` is named as well, it names a file that holds the value. Paths are relative to the working directory.
All mistakes are told at once, and nothing starts with one (exit code 2).
`;

const COLUMNS = ['Name', 'Must be', 'Default', 'What it is'];

/** What stands in `docs/reference/settings.md`. */
export const settingsReference = [
  HEAD,
  ...settingsByGroup().map(({ title, settings }) =>
    [
      `## ${title}\n`,
      line(COLUMNS),
      line(COLUMNS.map(() => '---')),
      ...settings.map((setting) => line(cells(setting))),
      '',
    ].join('\n'),
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

/** A row of a table, in which neither a bar nor an angle bracket means anything. */
function line(texts: readonly string[]): string {
  const plain = (text: string) => text.replaceAll('|', '\\|').replace(/<(?!br>)/g, '&lt;');
  return `| ${texts.map(plain).join(' | ')} |`;
}

if (import.meta.main) process.stdout.write(settingsReference);
