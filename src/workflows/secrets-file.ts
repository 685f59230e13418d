/** Reads a team's file of secrets, and what it says of those that workflows made over the API may use. */
import { readFile } from 'node:fs/promises';
import { yaml } from '../std/yaml.ts';
import { isSecretName } from './secret-names.ts';

/** A secret as the file has it. */
export interface FiledSecret {
  /** Undefined when a setting of the environment holds it. */
  value: string | undefined;
  /** Origins that workflows made over the API may send it to; null: they may not use it. */
  origins: ReadonlySet<string> | null;
}

/**
 * A map of names to strings, or to `{ value: "…", api: true, hosts: [api.example.com] }`. A host stands for itself
 * by TLS; an origin such as `http://localhost:8080` for what it says.
 *
 * @returns nothing in it when there is no such file
 * @throws Error with a sentence that shows no value
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
    // The parser's own sentence could quote a secret.
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

/** A secret with more than its value, or what is wrong with it. */
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
  // Neither a path nor a user: they would mean less than they say.
  const isBare = url !== null && url.href === `${url.origin}/` && !host.endsWith('/') && !host.includes('*');
  return isBare ? url.origin : undefined;
}
