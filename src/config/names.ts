/** The names of a setting as a variable and as a flag, and variables that look misspelt. */
import { nearest } from '../std/nearest.ts';
import { type NamedSetting, SETTINGS } from './settings.ts';

/** `publicUrl` → `FLOWHOOK_PUBLIC_URL`. */
export function environmentName(name: string): string {
  return `FLOWHOOK_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** `publicUrl` → `--public-url`. */
export function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Whether its value is never shown, and may be in a file named by `<variable>_FILE`. */
export function holdsSecret(setting: Pick<NamedSetting, 'secret' | 'mayHoldSecret'>): boolean {
  return setting.secret === true || setting.mayHoldSecret === true;
}

/** Variables that the service sets for runs. */
const OF_RUNS = ['FLOWHOOK_WORKFLOW', 'FLOWHOOK_JOB', 'FLOWHOOK_ATTEMPT'];
/** Variables of commands that ask a server. */
const OF_COMMANDS = ['FLOWHOOK_URL', 'FLOWHOOK_KEY', 'FLOWHOOK_PROFILE'];

/**
 * A sentence for each variable that looks like a misspelt setting. Only near misses, and never an error: other programs
 * set variables beginning with `FLOWHOOK_` too, such as Kubernetes for a service named flowhook.
 */
export function misspeltVariables(environment: ReadonlyMap<string, string>): string[] {
  const names = SETTINGS.map(({ name }) => environmentName(name));
  const files = SETTINGS.filter(holdsSecret).map(({ name }) => `${environmentName(name)}_FILE`);
  const known = [...names, ...files, ...OF_RUNS, ...OF_COMMANDS];
  const ending = (variable: string) => variable.slice('FLOWHOOK_'.length);
  return [...environment.keys()].flatMap((variable) => {
    if (!variable.startsWith('FLOWHOOK_') || variable.startsWith('FLOWHOOK_SECRET__')) return [];
    if (known.includes(variable)) return [];
    const plain = variable.replace(/_FILE$/, '');
    if (names.includes(plain)) {
      return [`${variable} has no effect: only secrets are read from files. Set ${plain} instead.`];
    }
    const meant = nearest(ending(variable), [...names, ...files].map(ending));
    if (meant === undefined) return [];
    return [`${variable} is not a setting and has no effect. Did you mean FLOWHOOK_${meant}?`];
  });
}
