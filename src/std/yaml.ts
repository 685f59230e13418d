/**
 * The YAML parser, loaded when the first text is parsed: its 72 files are a tenth of what a start would load, and a start
 * that finds no new workflow file parses none.
 */
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
