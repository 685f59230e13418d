/**
 * YAML, loaded with the first text: its 72 files are a tenth of what a start would load, and one that finds no workflow
 * file that is new to it reads none.
 */
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
