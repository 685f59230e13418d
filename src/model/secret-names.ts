/** The names of secrets, how definitions refer to them, and where they are set. */

/** No double underscore and none at the start, so that `FLOWHOOK_SECRET__<TEAM>__<NAME>` is unambiguous. */
const NAME = '[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*';

export function isSecretName(text: string): boolean {
  return new RegExp(`^${NAME}$`).test(text);
}

/** Matches all `${secret.NAME}` of a text; the first group is the name. */
export function secretReferences(): RegExp {
  return new RegExp(`\\$\\{secret\\.(${NAME})\\}`, 'g');
}

/**
 * A text with a digit for each placeholder, so that a URL can be parsed. None of the pattern's braces may stand inside,
 * or `${${${…` would be walked from each of them to the end.
 */
export function withoutPlaces(text: string): string {
  return text.replace(/\$\{[^{}]*\}/g, '0');
}

/** The prefix of the environment variables that hold a team's secrets. */
export function secretPrefix(team: string): string {
  return `FLOWHOOK_SECRET__${team.toUpperCase().replaceAll('-', '_')}__`;
}

/** The error message for a secret that is used but not set. */
export function missingSecret(team: string, name: string): string {
  return (
    `The secret ${name} is not set for team ${team}. Set ${secretPrefix(team)}${name} for the service, ` +
    `or add ${name} to secrets/${team}.yaml beside the workflows directory`
  );
}
