/** Compresses the built dashboard and guide: uncompressed, they would be a third of the package. */
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { INDEX, TEXTS } from '../src/http/ui/background-build.ts';

const PARAMS = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };

/**
 * Replaces the texts of a build, except its index, with their Brotli form, whose names end in `.br`. The service
 * decompresses them for clients that do not accept it.
 *
 * @returns compressed sizes in bytes, by the name of the text
 */
export function compressTexts(directory: string): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!TEXTS.test(name) || name === INDEX) continue;
    const path = join(directory, name);
    const bytes = brotliCompressSync(readFileSync(path), { params: PARAMS });
    writeFileSync(`${path}.br`, bytes);
    rmSync(path);
    sizes.set(name, bytes.length);
  }
  // A service that has listed the files already lists them again.
  const now = new Date();
  utimesSync(join(directory, INDEX), now, now);
  return sizes;
}
