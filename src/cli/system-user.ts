/** Who runs a command, for the audit. */
import { userInfo } from 'node:os';

/** The name of the user, with the one who called sudo; the user's number if it has no name, as in containers. */
export function systemUser(environment: ReadonlyMap<string, string>): string {
  const before = environment.get('SUDO_USER');
  const name = nameOfUser();
  return before === undefined || before === name ? name : `${name} (sudo by ${before})`;
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
