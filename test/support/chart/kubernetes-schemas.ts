/** Writes the JSON Schemas that kubeconform needs, from the OpenAPI document of a version of Kubernetes. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse } from 'yaml';

interface Schema {
  type?: string;
  format?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  items?: Schema;
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[];
}

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';

/**
 * Writes a schema for each kind into the directory: `deployment-apps-v1.json`, and so on. Fields that Kubernetes does
 * not have are mistakes.
 *
 * @param document the path of `swagger.json`
 * @param custom the paths of custom resource definitions (YAML)
 */
export async function writeSchemas(
  directory: string,
  { document, custom }: { document: string; custom: readonly string[] },
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const { definitions } = JSON.parse(await readFile(document, 'utf8')) as {
    definitions: Record<string, Schema>;
  };
  const shared = join(directory, '_definitions.json');
  for (const [name, schema] of Object.entries(definitions)) {
    // The document calls these strings, although they may be numbers.
    if (schema.format === 'int-or-string' || name === QUANTITY) delete schema.type;
    if (schema.properties !== undefined) schema.additionalProperties ??= false;
  }
  await writeFile(shared, JSON.stringify({ definitions }));
  for (const [name, schema] of Object.entries(definitions)) {
    const $ref = `${pathToFileURL(shared)}#/definitions/${name}`;
    for (const kind of schema['x-kubernetes-group-version-kind'] ?? []) {
      await writeFile(join(directory, fileOf(kind)), JSON.stringify({ $ref }));
    }
  }
  for (const path of custom) {
    const { group, names, versions } = parse(await readFile(path, 'utf8')).spec;
    for (const { name: version, schema } of versions) {
      const file = fileOf({ group, version, kind: names.kind });
      await writeFile(join(directory, file), JSON.stringify(strict(schema.openAPIV3Schema)));
    }
  }
}

/** The name by which kubeconform looks for the schema of a kind. */
function fileOf({ group, version, kind }: { group: string; version: string; kind: string }): string {
  const [prefix] = group.split('.');
  return [kind, ...(prefix ? [prefix] : []), version].join('-').toLowerCase().concat('.json');
}

/** Forbids unknown fields in every object of a schema. Only metadata is described elsewhere. */
function strict(schema: Schema): Schema {
  if (schema.items !== undefined) return { ...schema, items: strict(schema.items) };
  if (schema.properties === undefined) return schema;
  const properties = Object.entries(schema.properties).map(([name, one]) => [name, strict(one)]);
  return { ...schema, properties: Object.fromEntries(properties), additionalProperties: false };
}
