/** The objects that Helm renders, and how a container of theirs is run on this machine. */
import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { type ChartTools, KUBERNETES } from './tools.ts';

const CHART = join(import.meta.dirname, '../../../deploy/helm/flowhook');

interface Container {
  args: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: SecretKey } }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface Probe {
  httpGet: { path: string };
}

interface SecretKey {
  name: string;
  key: string;
  optional?: boolean;
}

interface PodSpec {
  terminationGracePeriodSeconds: number;
  containers: [Container];
  volumes: { name: string; configMap?: { name: string; items: { key: string; path: string }[] } }[];
}

/** One object. Only the fields that tests read have types. */
export interface Rendered {
  kind: string;
  metadata: { name: string };
  spec: { template: { spec: PodSpec }; [field: string]: unknown };
  data: Record<string, string>;
}

/** Returns the text that `helm template` prints for a release named flowhook. @throws Error with Helm's message */
export async function render({ helm }: ChartTools, values: object, version?: string): Promise<string> {
  const args = ['template', 'flowhook', CHART, '--kube-version', version ?? KUBERNETES[1], '--values', '-'];
  const running = promisify(execFile)(helm, args);
  running.child.stdin?.end(stringify(values));
  return (await running).stdout;
}

export function objectsOf(text: string): Rendered[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Rendered);
}

export function objectNamed(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`The chart renders no ${kind} ${name}`);
  return found;
}

/**
 * The environment of a pod's container.
 *
 * @param secrets the keys of the Secrets, by name
 * @throws Error if a Secret lacks a key that is not optional, as the kubelet does
 */
export function environmentOf(
  { spec }: Rendered,
  secrets: Readonly<Record<string, Record<string, string>>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const { name, value, valueFrom } of spec.template.spec.containers[0].env) {
    const { secretKeyRef } = valueFrom ?? {};
    const found = secretKeyRef === undefined ? value : secrets[secretKeyRef.name]?.[secretKeyRef.key];
    if (found !== undefined) environment[name] = found;
    else if (secretKeyRef?.optional !== true) throw new Error(`${name} has no value`);
  }
  return environment;
}

/**
 * Writes the workflow files of a pod, if it has any, into `workflows` in a directory, with links as in the volume of a
 * ConfigMap.
 */
export async function writeWorkflows(
  { spec }: Rendered,
  objects: readonly Rendered[],
  directory: string,
): Promise<void> {
  const volume = spec.template.spec.volumes.find(({ name }) => name === 'workflows')?.configMap;
  if (volume === undefined) return;
  const { data } = objectNamed(objects, 'ConfigMap', volume.name);
  const root = join(directory, 'workflows');
  for (const { key, path } of volume.items) {
    const file = join(root, '..2026_11_23', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, data[key] ?? '');
  }
  await symlink('..2026_11_23', join(root, '..data'));
  for (const name of new Set(volume.items.map(({ path }) => path.split('/')[0] ?? ''))) {
    await symlink(join('..data', name), join(root, name));
  }
}
