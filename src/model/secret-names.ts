/** The names of secrets, the references to secrets in definitions, and the places where secrets are set. */

/**
 * Names of secrets contain no double underscore and do not start with an underscore, so that
 * `FLOWHOOK_SECRET__<TEAM>__<NAME>` is unambiguous.
 */
const NAME = '[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*';

export function isSecretName(text: string): boolean {
  return new RegExp(`^${NAME}$`).test(text);
}

/** Matches every `${secret.NAME}` in a text; the first group is the name. */
export function secretReferences(): RegExp {
  return new RegExp(`\\$\\{secret\\.(${NAME})\\}`, 'g');
}

/**
 * Replaces each placeholder in a URL with a digit, so that the URL can be parsed. The pattern excludes braces inside
 * placeholders, because matching `${${${…` would otherwise take quadratic time.
 */
export function withoutPlaces(text: string): string {
  return text.replace(/\$\{[^{}]*\}/g, '0');
}

/** Prefix of the environment variables with a team's secrets. */
export function secretPrefix(team: string): string {
  return `FLOWHOOK_SECRET__${team.toUpperCase().replaceAll('-', '_')}__`;
}

/** Error message for a secret that is used but not set. */
export function missingSecret(team: string, name: string): string {
  return (
    `The secret ${name} is not set for team ${team}. Set ${secretPrefix(team)}${name} for the service, ` +
    `or add ${name} to secrets/${team}.yaml beside the workflows directory`
  );
}
