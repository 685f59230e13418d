/**
 * Loads the YAML parser when the first text is parsed. The 72 files of the parser are a tenth of the files that a start
 * loads, and a start without new workflow files parses no YAML.
 */
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
