/** The secrets of a team: from settings, and from a file beside the workflows directory. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { isSecretName, secretPrefix } from './secret-names.ts';

/**
 * Collects what `${secret.NAME}` and `ctx.secret('NAME')` answer for a team: `secrets/<team>.yaml` beside the
 * workflows directory (a map of names to strings), and over it the settings
 * `FLOWHOOK_SECRET__<TEAM>__<NAME>`, where the team's slug is in upper case with `_` for `-`.
 *
 * Read for each run, so that a changed secret needs no restart. Rejects with a sentence that shows no value when
 * the file cannot be used.
 */
export async function teamSecrets(input: {
  directory: string;
  team: string;
  environment: ReadonlyMap<string, string>;
}): Promise<ReadonlyMap<string, string>> {
  const secrets = await secretsFile(join(dirname(resolve(input.directory)), 'secrets', `${input.team}.yaml`));
  const prefix = secretPrefix(input.team);
  for (const [setting, value] of input.environment) {
    const name = setting.slice(prefix.length);
    if (setting.startsWith(prefix) && isSecretName(name)) secrets.set(name, value);
  }
  return secrets;
}

async function secretsFile(file: string): Promise<Map<string, string>> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return new Map();
    throw new Error(`The secrets file ${file} cannot be read: ${message}`, { cause: error });
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const broken = document.errors[0];
  if (broken !== undefined) {
    // The parser's own sentence could quote a secret.
    throw new Error(`${file}:${lines.linePos(broken.pos[0]).line} is not valid YAML (${broken.code})`);
  }
  const content: unknown = document.toJS() ?? {};
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new Error(`${file} must be a map of names to strings, such as TOKEN: "…"`);
  }
  const secrets = new Map<string, string>();
  for (const [name, value] of Object.entries(content)) {
    if (!isSecretName(name)) {
      throw new Error(
        `${file}: a secret's name must be letters, digits and single underscores between them, found ${JSON.stringify(name)}`,
      );
    }
    if (typeof value !== 'string') {
      throw new Error(`${file}: ${name} must be a string; put numbers and dates into quotes`);
    }
    secrets.set(name, value);
  }
  return secrets;
}
