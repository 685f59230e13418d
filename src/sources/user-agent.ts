/** The `User-Agent` of requests that sources send: `flowhook/1.2.3`. */
import { readFileSync } from 'node:fs';

export function userAgent(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return `flowhook/${(JSON.parse(manifest) as { version: string }).version}`;
}
