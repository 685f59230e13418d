/** A module workflow with real data, without network: the authors of all packages in the nearest `node_modules`. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Context, Rec, Workflow } from 'flowhook/workflow';

export const workflow: Workflow = {
  name: 'Package authors',
  limits: { timeout: '2m' },
};

export default async function* packageAuthors(ctx: Context): AsyncGenerator<Rec> {
  const root = installedPackages();
  const names = await packageNames(root);
  let people = 0;
  for (const name of names) {
    if (ctx.signal.aborted) return;
    const manifest = await manifestOf(join(root, name));
    if (manifest === undefined) continue;
    for (const person of peopleOf(manifest)) {
      people++;
      yield {
        id: `${name}:${(person.email ?? person.name).toLowerCase()}`,
        name: person.name,
        email: person.email,
        roles: person.roles,
        package: name,
        version: manifest.version,
        licence: licenceOf(manifest),
        repository: repositoryOf(manifest),
      };
    }
  }
  ctx.log.info(`Found ${people} people in ${names.length} packages`);
}

type Manifest = Record<string, unknown>;

interface Person {
  name: string;
  email?: string;
  roles: string[];
}

/** The nearest `node_modules` above this file. */
function installedPackages(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules');
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) {
      throw new Error(`There is no node_modules above ${import.meta.dirname}. Run npm ci first`);
    }
  }
}

async function packageNames(root: string): Promise<string[]> {
  const names: string[] = [];
  for (const entry of (await readdir(root)).sort()) {
    if (entry.startsWith('.')) continue;
    if (!entry.startsWith('@')) names.push(entry);
    else for (const name of (await readdir(join(root, entry))).sort()) names.push(`${entry}/${name}`);
  }
  return names;
}

async function manifestOf(folder: string): Promise<Manifest | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch {
    // Not every folder is a package.
    return undefined;
  }
}

/** Each person once, with all of their roles. */
function peopleOf(manifest: Manifest): Person[] {
  const people = new Map<string, Person>();
  for (const role of ['author', 'authors', 'maintainers', 'contributors']) {
    for (const entry of [manifest[role]].flat()) {
      const found = personOf(entry);
      if (found === undefined) continue;
      const key = (found.email ?? found.name).toLowerCase();
      const person = people.get(key) ?? { ...found, roles: [] };
      const name = role === 'authors' ? 'author' : role.replace(/s$/, '');
      if (!person.roles.includes(name)) person.roles.push(name);
      people.set(key, person);
    }
  }
  return [...people.values()];
}

/** npm accepts a person as `Ada Lovelace <ada@example.org> (https://…)` or as an object with `name`, `email` and `url`. */
function personOf(entry: unknown): { name: string; email?: string } | undefined {
  const written =
    typeof entry === 'object' && entry !== null ? (entry as { name?: unknown; email?: unknown }) : {};
  const text = typeof entry === 'string' ? entry : '';
  const email = textOf(written.email) ?? textOf(/<([^>]*)>/.exec(text)?.[1]);
  const name = textOf(written.name) ?? textOf(text.replace(/<[^>]*>|\([^)]*\)/g, '')) ?? email;
  if (name === undefined) return undefined;
  return email === undefined ? { name } : { name, email };
}

function licenceOf(manifest: Manifest): string | undefined {
  const licence = manifest.license ?? [manifest.licenses].flat()[0];
  return textOf(licence) ?? textOf((licence as { type?: unknown } | undefined)?.type);
}

function repositoryOf(manifest: Manifest): string | undefined {
  const repository = manifest.repository;
  return textOf(repository) ?? textOf((repository as { url?: unknown } | undefined)?.url);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}
