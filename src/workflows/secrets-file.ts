/** Reads a team's secrets file, which also says which secrets workflows made over the API may use. */
import { readFile } from 'node:fs/promises';
import { isSecretName } from '../model/secret-names.ts';
import { yaml } from '../std/yaml.ts';

/** A secret in the file. */
interface FiledSecret {
  /** Undefined when an environment variable holds it. */
  value: string | undefined;
  /** Origins that workflows made over the API may send it to; null: they may not use it. */
  origins: ReadonlySet<string> | null;
}

/**
 * The file is a map of names to strings, or to `{ value: "…", api: true, hosts: [api.example.com] }`. A bare host means
 * HTTPS on its default port; an origin such as `http://localhost:8080` is taken as it is.
 *
 * @returns an empty map when there is no such file
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
    // The parser's own message could quote a secret.
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
        `${file}: a secret's name must be letters, digits and single underscores between them, found ${JSON.stringify(name)}`,
      );
    }
    const secret = typeof said === 'string' ? { value: said, origins: null } : markedSecret(said);
    if (typeof secret === 'string') throw new Error(`${file}: ${name} ${secret}`);
    secrets.set(name, secret);
  }
  return secrets;
}

/** A secret written as a map, or the mistake in it. */
function markedSecret(said: unknown): FiledSecret | string {
  const { value, api, hosts, ...others } = (said ?? {}) as Record<string, unknown>;
  if (typeof said !== 'object' || api === undefined || Object.keys(others).length > 0) {
    return (
      'must be a string; put numbers and dates into quotes. For workflows made over the API it is a map of ' +
      '`value`, `api: true` and `hosts`'
    );
  }
  if (value !== undefined && typeof value !== 'string') return 'has a `value` that must be a string';
  if (api !== true) return 'has an `api` that can only be true. Leave it out, with `hosts`, otherwise';
  if (!Array.isArray(hosts) || hosts.length === 0) {
    return 'must say with `hosts` where workflows made over the API may send it, such as hosts: [api.example.com]';
  }
  const origins = hosts.map(originOf);
  const wrong = origins.indexOf(undefined);
  if (wrong !== -1) {
    return `has in \`hosts\` ${JSON.stringify(hosts[wrong])}, which must be a host such as api.example.com`;
  }
  return { value, origins: new Set(origins as string[]) };
}

function originOf(host: unknown): string | undefined {
  if (typeof host !== 'string') return undefined;
  const url = URL.parse(/^https?:\/\//i.test(host) ? host : `https://${host}`);
  // Paths, users and wildcards would have no effect, so they are refused.
  const isBare = url !== null && url.href === `${url.origin}/` && !host.endsWith('/') && !host.includes('*');
  return isBare ? url.origin : undefined;
}
