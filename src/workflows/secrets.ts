/** The secrets of a team: from environment variables, and from a file beside the workflows directory. */
import { dirname, join, resolve } from 'node:path';
import { isSecretName, secretPrefix } from '../model/secret-names.ts';
import { isOfApi, type Workflow } from '../model/workflow.ts';
import { type ApiSecret, apiMistakes } from './api-secrets.ts';
import { readSecretsFile } from './secrets-file.ts';

/** Where to find a team's secrets. */
interface SecretsPlace {
  /** The workflows directory. */
  directory: string;
  /** The team's slug. */
  team: string;
  environment: ReadonlyMap<string, string>;
}

/**
 * The secrets for `${secret.NAME}` and `ctx.secret('NAME')`: from `secrets/<team>.yaml` beside the workflows directory,
 * overridden by the variables `FLOWHOOK_SECRET__<TEAM>__<NAME>`, with the team's slug in upper case and `_` for `-`.
 *
 * Read for each run, so that a changed secret needs no restart.
 *
 * @throws Error, whose message contains no secret, when the file cannot be used
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

/** The secrets that workflows made over the API may use. Their values may come from environment variables too. */
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
 * The secrets that a run of a workflow may use. A workflow made over the API is checked again, because the permissions
 * in the file may have changed since.
 *
 * @throws Error when the workflow uses a secret that it may not use, or the secrets file cannot be read
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
