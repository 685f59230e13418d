/**
 * The YAML parser, loaded when the first text is parsed: its 72 files are a tenth of the files of a start, and a start
 * without new workflow files parses no YAML.
 */
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
