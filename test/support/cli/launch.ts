/** How tests start an installed program. */
import { keptCode } from '../run/kept-code.ts';

export interface Launch {
  file: string;
  /** The first arguments; those of `flowhook` follow. */
  args: string[];
  environment: Record<string, string>;
}

/**
 * @param program a file for this Node, such as `flowhook.js`, a command that npm has linked, or the executable, which
 * needs neither PATH nor HOME
 */
export function launchOf(program: string): Launch {
  const { PATH = '', HOME = '' } = process.env;
  if (program.includes('/.bin/')) return { file: program, args: [], environment: { PATH, HOME } };
  if (!/\.[jt]s$/.test(program)) return { file: program, args: [], environment: { PATH: '', HOME: '' } };
  return { file: process.execPath, args: [program], environment: { PATH, HOME, ...keptCode } };
}
