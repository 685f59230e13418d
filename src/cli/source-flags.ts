/** The flags that describe an HTTP source, and the definition made from them. */
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { parseYamlDefinition } from '../definitions/definition.ts';
import type { HttpSource } from '../model/http-source.ts';
import { UsageError } from './exit.ts';
import { repeated } from './flag-values.ts';
import type { Options } from './settings.ts';

export function addSourceFlags(command: Command): Command {
  return command
    .option('--url <url>', 'the URL to start from (may be repeated)', repeated)
    .option('--parse <kind>', 'json, ndjson, csv, html or xml (default: detected)')
    .option('--records <path>', 'JSONPath or CSS selector of the records')
    .option(
      '--field <name=path>',
      'a field: JSONPath, selector, or selector@attribute (may be repeated)',
      repeated,
    )
    .option('--header <name: value>', 'a header of the requests (may be repeated)', repeated)
    .option('--next <path>', 'path to the URL of the next page')
    .option('--page-param <name>', 'the query parameter with the page number')
    .option('--follow <path>', 'path to the URL of the detail page of a record')
    .option('--follow-field <name=path>', 'a field of the detail page (may be repeated)', repeated);
}

/** The definition as it would be written in YAML. */
export function settingsOf(options: Options): Record<string, unknown> {
  const urls = (options.url ?? []) as string[];
  const fields = pairs(options.field, '=', '--field');
  const headers = pairs(options.header, ':', '--header');
  const followFields = pairs(options.followField, '=', '--follow-field');
  return {
    source: {
      type: 'http',
      url: urls.length === 1 ? urls[0] : urls,
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
      ...(options.parse === undefined ? {} : { parse: options.parse }),
      ...(options.records === undefined ? {} : { records: options.records }),
      ...(options.next === undefined ? {} : { paginate: { type: 'next_link', from: options.next } }),
      ...(options.pageParam === undefined ? {} : { paginate: { type: 'page', param: options.pageParam } }),
      ...(options.follow === undefined ? {} : { follow: { url: options.follow, fields: followFields } }),
    },
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
  };
}

/** Checks a definition as `apply` would. @throws UsageError with every mistake, one per line */
export function checkedSource(text: string, file: string): HttpSource {
  const parsed = parseYamlDefinition(text, { file });
  if ('mistakes' in parsed) throw new UsageError(parsed.mistakes.map(({ message }) => message).join('\n'));
  const { source } = parsed.definition;
  if (source.type !== 'http')
    throw new UsageError(`${file} is no http source: \`flowhook workflows test\` tries any kind`);
  return source;
}

export function sourceOfFlags(options: Options): HttpSource {
  return checkedSource(stringify(settingsOf(options)), 'default/preview.yaml');
}

function pairs(values: unknown, mark: string, flag: string): Record<string, string> {
  return Object.fromEntries(
    ((values ?? []) as string[]).map((value) => {
      const at = value.indexOf(mark);
      if (at < 1)
        throw new UsageError(
          `${flag} must be written as name${mark}${mark === ':' ? ' value' : 'path'}, found ${value}`,
        );
      return [value.slice(0, at).trim(), value.slice(at + 1).trim()];
    }),
  );
}
