/** The secrets of a team, from environment variables and from a file beside the workflows directory. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isSecretName, secretPrefix } from '../model/secret-names.ts';
import { isOfApi, type Workflow } from '../model/workflow.ts';
import { yaml } from '../std/yaml.ts';
import { type ApiSecret, apiMistakes } from './api-bounds.ts';

/** Where to find a team's secrets. */
interface SecretsPlace {
  /** The workflows directory. */
  directory: string;
  /** The team's slug. */
  team: string;
  environment: ReadonlyMap<string, string>;
}

/**
 * Returns the secrets for `${secret.NAME}` and `ctx.secret('NAME')`. They come from `secrets/<team>.yaml` beside the
 * workflows directory, and from variables `FLOWHOOK_SECRET__<TEAM>__<NAME>`, which override the file. In variable
 * names, the team's slug is in upper case with `_` for `-`. Secrets are read for each run, so that a changed secret
 * needs no restart.
 *
 * @throws Error, whose message contains no secret, if the file cannot be used
 */
export async function teamSecrets(place: SecretsPlace): Promise<ReadonlyMap<string, string>> {
  const secrets = new Map<string, string>();
  for (const [name, { value }] of await readSecretsFile(fileOf(place))) {
    if (value !== undefined) secrets.set(name, value);
  }
  const prefix = secretPrefix(place.team);
  for (const [setting, value] of place.environment) {
    const name = setting.slice(prefix.length);
    if (setting.startsWith(prefix) && isSecretName(name)) secrets.set(name, value);
  }
  return secrets;
}

/**
 * Returns the secrets that workflows made over the API may use. The values of these secrets may be in environment
 * variables.
 */
export async function apiSecrets(place: SecretsPlace): Promise<ReadonlyMap<string, ApiSecret>> {
  const [filed, values] = await Promise.all([readSecretsFile(fileOf(place)), teamSecrets(place)]);
  const secrets = new Map<string, ApiSecret>();
  for (const [name, { origins }] of filed) {
    const value = values.get(name);
    if (origins !== null && value !== undefined) secrets.set(name, { value, origins });
  }
  return secrets;
}

/**
 * Returns the secrets that a run of a workflow may use. A workflow made over the API is checked again, because the
 * permissions in the secrets file may have changed.
 *
 * @throws Error if the workflow uses a secret that it may not use, or the secrets file cannot be read
 */
export async function runSecrets(
  workflow: Pick<Workflow, 'definition' | 'definitionHash'>,
  place: SecretsPlace,
): Promise<ReadonlyMap<string, string>> {
  if (!isOfApi(workflow)) return teamSecrets(place);
  const secrets = await apiSecrets(place);
  const [mistake] = apiMistakes(workflow.definition.source, secrets);
  if (mistake !== undefined) throw new Error(mistake);
  return new Map([...secrets].map(([name, { value }]) => [name, value]));
}

function fileOf({ directory, team }: SecretsPlace): string {
  return join(dirname(resolve(directory)), 'secrets', `${team}.yaml`);
}

interface FiledSecret {
  /** Undefined if an environment variable holds the value of the secret. */
  value: string | undefined;
  /** The origins to which workflows made over the API may send the secret; null if they may not use the secret. */
  origins: ReadonlySet<string> | null;
}

/**
 * Reads a secrets file. It maps names to strings, or to `{ value: "…", api: true, hosts: [api.example.com] }`. A bare
 * host means HTTPS on its default port. An origin such as `http://localhost:8080` is used unchanged.
 *
 * @returns an empty map if there is no such file
 * @throws Error whose message contains no secret
 */
export async function readSecretsFile(file: string): Promise<Map<string, FiledSecret>> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return new Map();
    throw new Error(`The secrets file ${file} cannot be read: ${message}`, { cause: error });
  }
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const broken = document.errors[0];
  if (broken !== undefined) {
    // The parser's own message is not used, because it could quote a secret.
    throw new Error(`${file}:${lines.linePos(broken.pos[0]).line} is not valid YAML (${broken.code})`);
  }
  const content: unknown = document.toJS() ?? {};
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new Error(`${file} must be a map of names to strings, such as TOKEN: "…"`);
  }
  const secrets = new Map<string, FiledSecret>();
  for (const [name, said] of Object.entries(content)) {
    if (!isSecretName(name)) {
      throw new Error(
        `${file}: the name of a secret must consist of letters and digits, with single underscores between them, found ${JSON.stringify(name)}`,
      );
    }
    const secret = typeof said === 'string' ? { value: said, origins: null } : markedSecret(said);
    if (typeof secret === 'string') throw new Error(`${file}: ${name} ${secret}`);
    secrets.set(name, secret);
  }
  return secrets;
}

/** Parses a secret that is written as a map. Returns a sentence if the map contains a mistake. */
function markedSecret(said: unknown): FiledSecret | string {
  const { value, api, hosts, ...others } = (said ?? {}) as Record<string, unknown>;
  if (typeof said !== 'object' || api === undefined || Object.keys(others).length > 0) {
    return (
      'must be a string; put numbers and dates in quotes. To permit the secret for workflows made over the API, write a map ' +
      'of `value`, `api: true` and `hosts`'
    );
  }
  if (value !== undefined && typeof value !== 'string') return 'has a `value` that is not a string';
  if (api !== true) return 'has an `api` that is not true. Set it to true, or remove `api` and `hosts`';
  if (!Array.isArray(hosts) || hosts.length === 0) {
    return 'needs `hosts`, a list of the only hosts to which workflows made over the API may send the secret, such as hosts: [api.example.com]';
  }
  const origins = hosts.map(originOf);
  const wrong = origins.indexOf(undefined);
  if (wrong !== -1) {
    return `has ${JSON.stringify(hosts[wrong])} in \`hosts\`, which is not a host such as api.example.com`;
  }
  return { value, origins: new Set(origins as string[]) };
}

function originOf(host: unknown): string | undefined {
  if (typeof host !== 'string') return undefined;
  const url = URL.parse(/^https?:\/\//i.test(host) ? host : `https://${host}`);
  // Paths, user names and wildcards would have no effect, so they are refused.
  const isBare = url !== null && url.href === `${url.origin}/` && !host.endsWith('/') && !host.includes('*');
  return isBare ? url.origin : undefined;
}
