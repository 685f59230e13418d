/**
 * Makes a release: `npm run release` lists the commands. CONTRIBUTING.md says in which order;
 * `.github/workflows/release.yml` runs the commands after the first when a tag is pushed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { makeDirectory } from '../src/std/make-directory.ts';
import { DIGESTS, digests } from '../test/support/store/frozen-schemas.ts';
import { cut, notesOf, releasesIn, unreleasedIn } from './changelog.ts';
import { billOf } from './sbom.ts';
import { differences, PACKAGES, setVersion, versionOf } from './versions.ts';

const REPOSITORY = join(import.meta.dirname, '..');
/** Tests use a copy of the files. */
const ROOT = process.env.RELEASE_ROOT ?? REPOSITORY;
const CHANGELOG = join(ROOT, 'CHANGELOG.md');
const SUMS = 'SHA256SUMS';

const [command = '', operand, ...flags] = process.argv.slice(2);
const COMMANDS: Record<string, { takes: string; does: string; run: () => void }> = {
  cut: {
    takes: 'VERSION',
    does: 'writes the version into all files, and the changes into a section of CHANGELOG.md',
    run: () => cutRelease(given('VERSION')),
  },
  check: {
    takes: '[TAG]',
    does: 'checks that versions, changelog and frozen migrations agree, and fit the tag',
    run: () => check(operand),
  },
  pack: {
    takes: 'DIRECTORY',
    does: 'makes the tarballs of all packages, the bill of materials and the checksums',
    run: () => pack(resolve(given('DIRECTORY'))),
  },
  sums: {
    takes: 'DIRECTORY',
    does: 'writes the checksums of the files in the directory again',
    run: () => writeSums(filled(given('DIRECTORY'))),
  },
  notes: {
    takes: '[VERSION]',
    does: 'prints the section of CHANGELOG.md',
    run: () => console.log(notes(operand ?? versionOf(ROOT))),
  },
  publish: {
    takes: 'DIRECTORY [--…]',
    does: 'publishes the tarballs that are not published yet, with these flags of npm',
    run: () => publish(filled(given('DIRECTORY'))),
  },
};
const HELP = Object.entries(COMMANDS)
  .map(([name, { takes, does }]) => `  ${`${name} ${takes}`.padEnd(24)} ${does}`)
  .join('\n');
try {
  const called = COMMANDS[command];
  if (called !== undefined) called.run();
  else if (/^(--help|-h|)$/.test(command)) console.log(`npm run release COMMAND\n\n${HELP}`);
  else fail(`There is no command "${command}". The commands are:\n${HELP}`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

function fail(sentence: string): never {
  throw new Error(sentence);
}

function given(what: string): string {
  return operand ?? fail(`Name the ${what}: npm run release ${command} ${what}`);
}

/** The path of a directory that contains a release. */
function filled(directory: string): string {
  const path = resolve(directory);
  const isFilled = statSync(path, { throwIfNoEntry: false })?.isDirectory() && readdirSync(path).length > 0;
  return isFilled
    ? path
    : fail(`There is no release in ${path}: make it with \`npm run release pack ${directory}\``);
}

function cutRelease(version: string): void {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) fail(`${version} is not a version such as 1.2.3`);
  const changelog = readFileSync(CHANGELOG, 'utf8');
  if (!unreleasedIn(changelog)) fail('CHANGELOG.md has no changes under "Unreleased"');
  setVersion(ROOT, version);
  writeFileSync(CHANGELOG, cut(changelog, version, new Date().toISOString().slice(0, 10)));
}

function check(tag: string | undefined): void {
  const version = versionOf(ROOT);
  const changelog = readFileSync(CHANGELOG, 'utf8');
  const [newest] = releasesIn(changelog);
  const found = differences(ROOT);
  if (newest?.version !== version) {
    found.push(`CHANGELOG.md must begin with a section "## ${version} – DATE" after "## Unreleased"`);
  }
  const today = new Date().toISOString().slice(0, 10);
  if (newest !== undefined && newest.date > today)
    found.push(`${newest.date} in CHANGELOG.md is in the future`);
  if (unreleasedIn(changelog) === undefined) found.push('CHANGELOG.md has no section "## Unreleased"');
  if (tag !== undefined) found.push(...objections(tag, { version, changelog }));
  if (found.length > 0) fail(found.join('\n'));
  console.log(`${tag ?? version} can be released`);
}

/** Returns what speaks against releasing this commit under the tag. */
function objections(tag: string, { version, changelog }: { version: string; changelog: string }): string[] {
  const found: string[] = [];
  if (tag !== `v${version}`) found.push(`The tag must be v${version}, found ${tag}`);
  if (unreleasedIn(changelog))
    found.push('CHANGELOG.md has changes under "Unreleased": move them into the section');
  const file = join(ROOT, relative(REPOSITORY, DIGESTS));
  const frozen: Record<string, string> = JSON.parse(readFileSync(file, 'utf8'));
  for (const path of Object.keys(digests()).filter((one) => !(one in frozen))) {
    found.push(`${path} is not frozen: run \`node test/support/store/freeze-schema.ts\``);
  }
  return found;
}

function pack(into: string): void {
  if (existsSync(into) && readdirSync(into).length > 0) fail(`${into} is not empty`);
  makeDirectory(into, 0o777);
  const npm = (cwd: string, ...args: string[]) =>
    execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  for (const name of PACKAGES) {
    const directory = join(ROOT, name);
    if (existsSync(join(directory, 'package-lock.json')) && !existsSync(join(directory, 'node_modules'))) {
      npm(directory, 'ci', '--ignore-scripts', '--no-audit', '--no-fund');
    }
    npm(directory, 'pack', '--silent', '--pack-destination', into);
  }
  const bill = join(into, 'flowhook.cdx.json');
  writeFileSync(bill, `${JSON.stringify(billOf(ROOT), null, 2)}\n`);
  writeSums(into);
}

/** Writes the checksums in the format of `sha256sum --check`. */
function writeSums(directory: string): void {
  const names = readdirSync(directory).filter((name) => name !== SUMS);
  const lines = names.sort().map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(directory, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(directory, SUMS), lines.join(''));
  process.stdout.write(lines.join(''));
}

function notes(version: string): string {
  const section = releasesIn(readFileSync(CHANGELOG, 'utf8')).find((one) => one.version === version);
  if (section === undefined) return fail(`CHANGELOG.md has no section for ${version}`);
  const { homepage } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { homepage: string };
  return notesOf(section, `${homepage.replace(/#.*/, '')}/blob/v${version}/`);
}

/** Publishes what is missing, so that an interrupted release can be run again. */
function publish(directory: string): void {
  const version = versionOf(ROOT);
  const environment = withToken();
  for (const path of PACKAGES) {
    const { name } = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8')) as { name: string };
    if (isPublished(`${name}@${version}`, environment)) {
      console.log(`${name}@${version} is published already`);
      continue;
    }
    const tag = version.includes('-') ? ['--tag', 'next'] : [];
    const args = ['publish', join(directory, `${name}-${version}.tgz`), ...tag, ...flags];
    execFileSync('npm', args, { env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  }
}

function isPublished(name: string, env: NodeJS.ProcessEnv): boolean {
  const { status, stdout } = spawnSync('npm', ['view', name, 'version', '--json'], { env, encoding: 'utf8' });
  if (status === 0) return stdout.trim() !== '';
  const { error } = JSON.parse(stdout || '{}') as { error?: { code: string; summary: string } };
  if (error?.code === 'E404') return false;
  return fail(`npm cannot say whether ${name} is published: ${error?.summary ?? 'it printed nothing'}`);
}

/** Without NPM_TOKEN, npm proves to the registry which workflow it runs in (trusted publishing). */
function withToken(): NodeJS.ProcessEnv {
  if (process.env.NPM_TOKEN === undefined || process.env.NPM_TOKEN === '') return process.env;
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-release-'));
  process.on('exit', () => rmSync(directory, { recursive: true }));
  const file = join(directory, 'npmrc');
  // npm replaces the variable, so that the token is not in a file.
  writeFileSync(file, `registry=${registry}\n${registry.replace(/^https?:/, '')}:_authToken=\${NPM_TOKEN}\n`);
  return { ...process.env, npm_config_userconfig: file };
}
