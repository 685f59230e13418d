/** `flowhook data` against a server. */
import type { Flowhook } from 'flowhook-client';
import { formatFrom, versionFrom, versionLine } from './data-flags.ts';
import { print, toOutput } from './output.ts';
import { withoutTeam } from './remote.ts';
import type { Options } from './settings.ts';

export async function recordsAt(server: Flowhook, workflow: string, options: Options): Promise<void> {
  const format = formatFrom(options);
  const version = versionFrom(options.at, '--at');
  // The bytes as they are: parsing could round numbers.
  const { body } = await server.workflows.dataAs(format, withoutTeam(workflow), { version });
  if (body !== null) await toOutput(body, format === 'json' ? '\n' : '');
}

export async function changesAt(server: Flowhook, workflow: string, options: Options): Promise<void> {
  const since = versionFrom(options.since, '--since') ?? 0;
  const until = versionFrom(options.until, '--until');
  const id = withoutTeam(workflow);
  const changes = server.workflows.changes(id, { since, ...(until === undefined ? {} : { until }) });
  if (options.json === true) return print(options, await Array.fromAsync(changes), []);
  async function* lines() {
    for await (const change of changes) yield Buffer.from(`${JSON.stringify(change)}\n`);
  }
  await toOutput(lines());
}

export async function versionsAt(server: Flowhook, workflow: string, options: Options): Promise<void> {
  const found = await Array.fromAsync(server.workflows.versions(withoutTeam(workflow)));
  const versions = found.map(({ number, ...rest }) => ({ version: number, ...rest }));
  print(options, versions, versions.map(versionLine));
}
