/** A whole response body: every record of a version, in one format and one encoding. */
import { createHash } from 'node:crypto';
import type { DataVersion } from '../store/operations/versions.ts';
import { type Encoding, encoded } from './encodings.ts';
import { type Format, formatter } from './formats.ts';
import { type Place, readWhole, type VersionReader } from './read.ts';

/** Identifies a body: the same place, version number, erasures, format and encoding always yield the same bytes. */
export interface Representation {
  place: Place;
  version: DataVersion;
  format: Format;
  encoding: Encoding;
}

/** The bytes of a body, read from the database by `readWhole`. */
export function bodyOf(
  store: VersionReader,
  { place, version, format, encoding }: Representation,
): AsyncIterable<Uint8Array> {
  const written = formatter({ format, columns: version.fields, only: null });
  return encoded(readWhole(store, place, version, written), encoding);
}

/** A unique name of a body, and a valid file name anywhere: ids may hold any character, so they are hashed. */
export function nameOf({ place, version, format, encoding }: Representation): string {
  const where = createHash('sha256')
    .update(JSON.stringify([place.teamId, place.workflowId]))
    .digest('hex')
    .slice(0, 32);
  return `${where}-${version.number}.${version.erasures}-${format}-${encoding}`;
}
