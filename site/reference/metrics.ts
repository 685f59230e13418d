/** The reference of all metrics, made of the registry of a node that has everything. */
import { type MeasuredNode, nodeMetrics, streamMetrics } from '../../src/http/server/node-metrics.ts';
import { Metrics } from '../../src/observe/metrics.ts';
import { processMetrics, traceMetrics } from '../../src/observe/process-metrics.ts';
import { workMetrics } from '../../src/observe/work-metrics.ts';
import { table } from './table.ts';

const HEAD = `# Metrics

Every metric of \`GET /metrics\`, with its own help text. Generated from the code that counts them;
[Metrics and alerts](../operate/metrics.md) says who may read them and how to use them.
`;

/** Nothing is read of the node: only names, words and labels are asked for. */
const NODE = { backups: {} } as MeasuredNode;

/** Those of a node with all there is. */
function described(): Metrics {
  const metrics = new Metrics();
  workMetrics(metrics, { eventTypes: [], reasons: [] });
  nodeMetrics(metrics, NODE);
  streamMetrics(metrics, { size: 0 });
  traceMetrics(metrics, undefined);
  processMetrics(metrics, { read: () => ({ p50Ms: 0, p99Ms: 0, maxMs: 0 }) });
  return metrics;
}

export const metricsReference: string = `${HEAD}
${table(
  ['Name', 'Kind', 'What it tells'],
  described().list.map(({ name, kind, help, labels }) => [
    `\`${name}${labels.length === 0 ? '' : `{${labels.join(', ')}}`}\``,
    kind,
    help,
  ]),
)}
`;
