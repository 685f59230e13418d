/** The version of flowhook. */
import { readOwnFile } from './own-files.ts';

/** The version in `package.json`. */
export const VERSION: string = JSON.parse(readOwnFile('package.json')).version;

/** The `User-Agent` of outgoing requests. */
export const USER_AGENT = `flowhook/${VERSION}`;
