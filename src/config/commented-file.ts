/** A `flowhook.yaml` with every setting as a comment that shows its default. */
import { parse as parseYaml } from 'yaml';
import { type NamedSetting, settingsByGroup } from './settings.ts';
import { environmentName, holdsSecret } from './sources.ts';

const WIDTH = 110;

const HEAD = `# Settings of Flowhook. Lines with a name right behind the # are settings: take the # away to set them.
# Flags win over FLOWHOOK_… variables, those over this file. \`flowhook config check\` says what is wrong with it,
# and \`flowhook config print --show-origin\` what holds, and why. Paths are relative to the working directory.
`;

/** What `flowhook init` writes. It is also valid with all settings uncommented. */
export function commentedSettings(): string {
  const groups = settingsByGroup().map(({ title, settings }) => [
    `# ---- ${title} ----\n`,
    ...settings.map((setting) => `${lines(setting).join('\n')}\n`),
  ]);
  return [HEAD, ...groups.flat()].join('\n');
}

function lines(setting: NamedSetting): string[] {
  const { name, sentence, expected, byDefault, example, secret } = setting;
  const otherwise = byDefault === undefined ? '' : ` By default: ${byDefault}.`;
  const said = commented(`${sentence} Must be ${expected}.${otherwise}`);
  const variable = environmentName(name);
  if (secret === true)
    return [...said, `# Never here: ${variable}, or ${variable}_FILE with the name of a file.`];
  const hint = holdsSecret(setting)
    ? commented(`With a password in it not here: ${variable}, or ${variable}_FILE with the name of a file.`)
    : [];
  return [...said, ...hint, `#${name}: ${scalar(example)}`];
}

/** The text as a YAML scalar, in quotes only if it would not be that string without them. */
function scalar(text: string): string {
  try {
    return String(parseYaml(`a: ${text}`).a) === text ? text : JSON.stringify(text);
  } catch {
    return JSON.stringify(text);
  }
}

function commented(text: string): string[] {
  const found: string[] = [];
  let rest = `# ${text}`;
  while (rest.length > WIDTH) {
    const at = rest.lastIndexOf(' ', WIDTH);
    if (at <= 2) break;
    found.push(rest.slice(0, at));
    rest = `# ${rest.slice(at + 1)}`;
  }
  return [...found, rest];
}
