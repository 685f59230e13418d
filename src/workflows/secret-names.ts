/** What a secret may be called, and where it is set. */

/** No double underscore, none at the start: `FLOWHOOK_SECRET__<TEAM>__<NAME>` must mean one team only. */
const NAME = '[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*';

export function isSecretName(text: string): boolean {
  return new RegExp(`^${NAME}$`).test(text);
}

/** Finds `${secret.NAME}` in a text; its first group is the name. */
export function secretReferences(): RegExp {
  return new RegExp(`\\$\\{secret\\.(${NAME})\\}`, 'g');
}

/** What the settings that hold a team's secrets begin with. */
export function secretPrefix(team: string): string {
  return `FLOWHOOK_SECRET__${team.toUpperCase().replaceAll('-', '_')}__`;
}

/** The sentence for a secret that is used and not set. */
export function missingSecret(team: string, name: string): string {
  return (
    `The secret ${name} is not set for team ${team}. Set ${secretPrefix(team)}${name} for the service, ` +
    `or add ${name} to secrets/${team}.yaml beside the workflows directory`
  );
}
