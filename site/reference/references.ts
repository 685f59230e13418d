/** Generates the pages of docs/reference, and the samples of the Zapier app, from the code: `npm run reference`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NamedSetting, settingsByGroup } from '../../src/config/settings.ts';
import { environmentName, flagName, holdsSecret } from '../../src/config/sources.ts';
import { type MeasuredNode, nodeMetrics, streamMetrics } from '../../src/http/server/node-metrics.ts';
import { EVENT_CATALOG } from '../../src/model/event-catalog.ts';
import { Metrics } from '../../src/observe/metrics.ts';
import { processMetrics, traceMetrics } from '../../src/observe/process-metrics.ts';
import { workMetrics } from '../../src/observe/work-metrics.ts';
import { cliReference } from './cli.ts';
import { errorsReference } from './errors.ts';
import { eventsReference } from './events.ts';
import { filtersReference } from './filters.ts';
import { table } from './table.ts';

const SETTINGS_HEAD = `# Settings

Every setting: its names, its valid values and its default. Generated from \`src/config/settings.ts\`.

\`flowhook config print --show-origin\` prints the settings in effect on a machine and where each comes from;
\`flowhook config check\` validates them without starting anything. \`flowhook init\` writes a \`flowhook.yaml\` that lists them all.

A setting can be given in three places, and the first wins: a flag (\`--public-url\`), an environment variable
(\`FLOWHOOK_PUBLIC_URL\`; an empty one is ignored), and \`flowhook.yaml\` in the working directory (\`publicUrl: …\`).
Secrets have no flag, because other users can read the command line of a process. A variable that ends in \`_FILE\`, where one
is listed, names a file with the value. Paths are relative to the working directory. A server does not start with an invalid
setting: it lists all mistakes and exits with code 2.
`;

const COLUMNS = ['Name', 'Valid values', 'Default', 'Description'];

const settingsReference = [
  SETTINGS_HEAD,
  ...settingsByGroup().map(
    ({ title, settings }) => `## ${title}\n\n${table(COLUMNS, settings.map(cells))}\n`,
  ),
].join('\n');

function cells(setting: NamedSetting): string[] {
  const variable = environmentName(setting.name);
  const names = [
    setting.name,
    ...(setting.secret === true ? [] : [flagName(setting.name)]),
    variable,
    ...(holdsSecret(setting) ? [`${variable}_FILE`] : []),
  ];
  return [
    names.map((name) => `\`${name}\``).join('<br>'),
    setting.expected,
    setting.default === undefined ? (setting.byDefault ?? 'none') : `\`${setting.default}\``,
    setting.sentence,
  ];
}

const METRICS_HEAD = `# Metrics

Every metric of \`GET /metrics\`, with its own help text. Generated from the code that counts them;
[Metrics and alerts](../operate/metrics.md) describes who may read them and how to use them.
`;

/** Only names, help texts and labels are used, so the node needs no values. */
const NODE = { backups: {} } as MeasuredNode;

function allMetrics(): Metrics {
  const metrics = new Metrics();
  workMetrics(metrics, { eventTypes: [], reasons: [] });
  nodeMetrics(metrics, NODE);
  streamMetrics(metrics, { size: 0 });
  traceMetrics(metrics, undefined);
  processMetrics(metrics, { read: () => ({ p50Ms: 0, p99Ms: 0, maxMs: 0 }) });
  return metrics;
}

const metricsReference = `${METRICS_HEAD}
${table(
  ['Name', 'Kind', 'Description'],
  allMetrics().list.map(({ name, kind, help, labels }) => [
    `\`${name}${labels.length === 0 ? '' : `{${labels.join(', ')}}`}\``,
    kind,
    help,
  ]),
)}
`;

const zapierSamples = `/** The example of each type of event, generated from the service's catalog by \`npm run reference\`. */

/** @type {Record<string, Record<string, any>>} */
export const SAMPLES = {
${EVENT_CATALOG.map(({ type, example }) => `  ${type}: ${JSON.stringify(example)},\n`).join('')}};
`;

/** @returns the text of each file by its path in the repository */
export async function references(): Promise<Record<string, string>> {
  return {
    'docs/reference/settings.md': settingsReference,
    'docs/reference/cli.md': await cliReference(),
    'docs/reference/errors.md': errorsReference,
    'docs/reference/events.md': eventsReference,
    'docs/reference/filters.md': filtersReference,
    'docs/reference/metrics.md': metricsReference,
    'integrations/zapier/src/samples.js': zapierSamples,
  };
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await references())) {
    writeFileSync(join(import.meta.dirname, '../..', path), text);
  }
}
