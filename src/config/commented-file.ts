/** A `flowhook.yaml` with every setting as a comment that shows its default. */
import { parse as parseYaml } from 'yaml';
import { type NamedSetting, settingsByGroup } from './settings.ts';
import { environmentName, holdsSecret } from './sources.ts';

const WIDTH = 110;

const HEAD = `# Settings of Flowhook. To set one, remove the # in front of its name.
# Flags override FLOWHOOK_… variables, which override this file. \`flowhook config check\` reports mistakes, and
# \`flowhook config print --show-origin\` shows the values in use. Paths are relative to the working directory.
`;

/** The `flowhook.yaml` that `flowhook init` writes. It is also valid with all settings uncommented. */
export function commentedSettings(): string {
  const groups = settingsByGroup().map(({ title, settings }) => [
    `# ---- ${title} ----\n`,
    ...settings.map((setting) => `${lines(setting).join('\n')}\n`),
  ]);
  return [HEAD, ...groups.flat()].join('\n');
}

function lines(setting: NamedSetting): string[] {
  const { name, sentence, expected, byDefault, example, secret } = setting;
  const preset = byDefault === undefined ? '' : ` Default: ${byDefault}.`;
  const description = commented(`${sentence} Must be ${expected}.${preset}`);
  const variable = environmentName(name);
  if (secret === true) {
    return [...description, `# Cannot be set here: use ${variable}, or a file named by ${variable}_FILE.`];
  }
  const hint = holdsSecret(setting)
    ? commented(`If it contains a password, use ${variable}, or a file named by ${variable}_FILE, instead.`)
    : [];
  return [...description, ...hint, `#${name}: ${scalar(example)}`];
}

/** The text as a YAML scalar, quoted only if YAML would otherwise read another value. */
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
