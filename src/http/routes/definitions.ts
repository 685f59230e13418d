/** Workflow definitions over the API: of type `push` and `http`, which run no code of their own. */
import { createHash } from 'node:crypto';
import type { ApiSecret } from '../../definitions/api-bounds.ts';
import { MAX_LEVELS } from '../../definitions/definition.ts';
import { found, Problem } from '../../model/error.ts';
import { OTHERWISES } from '../../model/quality/expect.ts';
import { isNestedDeeper } from '../../model/record.ts';
import {
  COMPARES,
  DEFAULT_KEEP,
  type Definition,
  isOfApi,
  MODES,
  MOST_KEPT,
  ON_INVALID,
  OVERLAPS,
  ofApiHash,
  type Workflow,
} from '../../model/workflow.ts';
import { messageResource } from '../../resources/error.ts';
import { shownWorkflow, workflowResource } from '../../resources/workflow.ts';
import { grouped } from '../../std/amounts.ts';
import { anyObject, boolean, choice, nullable, object, optional, text } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { checkIfMatch, IF_MATCH, sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import { flagParameter } from '../input/query.ts';
import { workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const TYPES: readonly unknown[] = ['push', 'http'];
/** Maximum number of mistakes in one error sentence. Further mistakes are counted. */
const MAX_MISTAKES = 10;

const DRY_RUN = flagParameter('dryRun', '`true` to check the definition without saving it');
const parameters = [pathParameter('workflowId', 'Workflow ID')];
const NO_ID =
  'Invalid workflow ID: use 1 to 200 characters without slashes, backslashes or control characters';
const errors = {
  precondition_failed: 'Workflow changed: `If-Match` does not have the current `ETag`',
  workflow_of_file: 'Workflow defined in a file by the operator, which the API cannot change',
};

/** PUT /v1/workflows/{workflowId} */
export const putWorkflow: Operation<KeyedCall<'apiSecrets' | 'ceilings' | 'definitions'>> = {
  id: 'putWorkflow',
  group: 'Workflows',
  summary: 'Create or update a workflow',
  description:
    'Creates a workflow that receives its records by push or reads them over HTTP, or changes one that was created ' +
    'over the API. The body has the content of a workflow file, as JSON. A deleted workflow is restored with its ' +
    'records. Workflows of other types are defined in files by the operator. An `http` source may use secrets, as `$' +
    '{secret.NAME}` in `headers`, `body`, `form` and `auth`, if the operator has set `api: true` for the secret in ' +
    "the team's secrets file. Requests with a secret may go only to the `hosts` of that secret. `proxy` is not allowed.",
  parameters: [...parameters, IF_MATCH, DRY_RUN],
  requestBody: jsonBody(
    {
      type: 'object',
      required: ['source'],
      properties: {
        name: { type: 'string', maxLength: 200 },
        source: {
          type: 'object',
          required: ['type'],
          description: 'Content of `source` in a workflow file',
          additionalProperties: true,
          properties: {
            type: { enum: TYPES },
            url: { description: 'One URL, or a list of URLs (only for `http`)' },
          },
        },
        fields: {
          type: 'object',
          description: 'Location of each field of a record in the response (only for `http`)',
        },
        key: {
          type: 'array',
          items: { type: 'string' },
          description: 'Fields whose values form the record ID (default: the field `id`)',
        },
        mode: { enum: MODES },
        onInvalid: { enum: ON_INVALID },
        schedule: {
          type: 'object',
          description: '`cron` with `timezone`, or `every`; and `missed` (only for `http`)',
        },
        overlap: { enum: OVERLAPS },
        // `additionalProperties`: the check of definitions names all mistakes together.
        keep: {
          type: 'object',
          additionalProperties: true,
          description:
            `Versions to keep: the newest \`versions\` (default: ${DEFAULT_KEEP.versions}, maximum: ${grouped(MOST_KEPT.versions)}), superseded ` +
            `at most \`days\` ago (default: ${DEFAULT_KEEP.days}, maximum: ${grouped(MOST_KEPT.days)})`,
          properties: {
            versions: { type: 'integer', minimum: 1, maximum: MOST_KEPT.versions },
            days: { type: 'integer', minimum: 1, maximum: MOST_KEPT.days },
          },
        },
        compare: {
          enum: COMPARES,
          description: 'Whether a record has changed if its values have (default), or if its JSON text has',
        },
        priority: {
          type: 'integer',
          description: 'Priority among the waiting jobs of the team: jobs with a higher number start first',
        },
        retries: { type: 'object', description: '`max` and `backoff` (only for `http`)' },
        expect: {
          type: 'object',
          description: 'Expectations of the records, and what happens if they are not met',
          additionalProperties: true,
          properties: {
            records: {
              type: 'object',
              description: 'Expectations of the number of records: counts, and percentages such as `20%`',
              additionalProperties: true,
              properties: {
                min: { type: 'integer', minimum: 0 },
                max: { type: 'integer', minimum: 0 },
                drop: { type: 'string' },
                rise: { type: 'string' },
                duplicates: { type: 'string' },
              },
            },
            fields: {
              type: 'object',
              description:
                'Expectations by the name or path of a field: `type`, `min`, `max`, `filled`, `unique`, `oneOf` and `matches`',
              additionalProperties: true,
            },
            fresh: { type: 'string', description: 'Longest time between two successful runs, such as `26h`' },
            otherwise: { enum: OTHERWISES },
          },
        },
        guards: { type: 'object', description: 'Earlier form of `expect`' },
        limits: { type: 'object', description: '`timeout`, `memory`, `output` and `records`' },
      },
    },
    { example: { name: 'People', source: { type: 'push' }, key: ['email'], mode: 'upsert' } },
  ),
  answer: jsonResponse(
    'Workflow saved. With `dryRun`, the response has only a message',
    object({ message: text(), workflow: optional(workflowResource) }),
  ),
  errors: {
    definition_invalid: 'Invalid definition (the error names each invalid setting)',
    field_invalid: 'A parameter has an invalid value',
    quota_reached: 'Maximum number of workflows reached',
    workflow_not_found: 'Invalid workflow ID',
    ...errors,
  },

  async handle(call) {
    const { services, caller, params, request } = call;
    const { store } = services;
    const { teamId } = caller;
    const dryRun = DRY_RUN.read(call.query);
    const fields = await bodyFields(call, 'a JSON object with the content of a workflow file');
    const id = workflowIdFrom(params.workflowId, NO_ID);
    const stored = await ownWorkflow(store, teamId, id);
    if (stored === undefined && request.headers['if-match'] !== undefined) {
      throw new Problem('precondition_failed', {
        sentence: 'This workflow does not exist yet: omit the If-Match header',
      });
    }
    const isBound = stored !== undefined && checkIfMatch(call, stored.definitionHash);
    const slug = (await store.teams.get({ teamId }))?.slug ?? '';
    const { nextRunAt, ...checked } = await checkedDefinition(call, fields, { slug, id });
    const definition = { ...checked.definition, asSent: fields };
    if (dryRun) return { message: 'The definition is valid: nothing was changed' };
    const hash = ofApiHash(createHash('sha256').update(JSON.stringify(definition)).digest('hex'));
    const change = { teamId, id, definition, hash, nextRunAt };
    const outcome = await store.workflows.apply(
      isBound ? { ...change, expectedHash: stored.definitionHash } : change,
    );
    if (outcome === 'stale') throw new Problem('precondition_failed');
    const workflow = found(await store.workflows.get({ teamId, id }), 'workflow_not_found');
    return { message: `Workflow ${outcome}`, workflow: await shownWorkflow(store, workflow) };
  },
};

/** GET /v1/workflows/{workflowId}/definition */
export const readWorkflowDefinition: Operation<KeyedCall<'workflowFile'>> = {
  id: 'readWorkflowDefinition',
  group: 'Workflows',
  etag: true,
  summary: 'Read the definition of a workflow',
  description:
    'Returns the definition twice: as written, and with every default filled in. To change the workflow, ' +
    'pass the `ETag` as `If-Match`. The text of a workflow file comes from a node that has the file, and may ' +
    'be newer than the applied definition.',
  parameters,
  answer: jsonResponse(
    'Workflow definition',
    object({
      origin: choice(['file', 'api'], 'Place where the definition is maintained'),
      file: nullable(
        text('Path in the workflows directory. `null` if the workflow was created over the API'),
      ),
      text: nullable(
        text(
          'Definition as written, in YAML, TypeScript or JSON. `null` if this node does not have the file',
        ),
      ),
      applied: nullable(boolean('`true` if `text` is the definition in use. `null` if `text` is `null`')),
      definition: anyObject('Definition with every default filled in'),
    }),
  ),
  errors: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { services, caller, params } = call;
    const { teamId } = caller;
    const id = workflowIdFrom(params.workflowId);
    const workflow = found(await services.store.workflows.get({ teamId, id }), 'workflow_not_found');
    const { asSent, ...definition } = workflow.definition;
    const written = isOfApi(workflow) ? sentOf(asSent) : await fileOf(call, workflow);
    return sendWithETag(call, JSON.stringify({ ...written, definition }), workflow.definitionHash);
  },
};

/** DELETE /v1/workflows/{workflowId} */
export const deleteWorkflow: Operation<KeyedCall> = {
  id: 'deleteWorkflow',
  group: 'Workflows',
  summary: 'Delete a workflow',
  description:
    'Archives a workflow that was created over the API. Requests for the workflow then return 404. Its records and ' +
    'webhooks are kept, and restored if the workflow is created again.',
  parameters,
  answer: jsonResponse('Workflow archived', messageResource),
  errors: { workflow_not_found: 'No workflow found', workflow_of_file: errors.workflow_of_file },

  async handle({ services: { store }, caller: { teamId }, params }) {
    const id = workflowIdFrom(params.workflowId);
    found(await ownWorkflow(store, teamId, id), 'workflow_not_found');
    await store.workflows.archive({ teamId, ids: [id] });
    return { message: 'Workflow archived' };
  },
};

function sentOf(asSent: Record<string, unknown> | undefined) {
  const text = asSent === undefined ? null : JSON.stringify(asSent, null, 2);
  return { origin: 'api', file: null, text, applied: text === null ? null : true };
}

async function fileOf(
  { services, caller }: KeyedCall<'workflowFile'>,
  { id, definition, definitionHash }: Workflow,
) {
  const team = (await services.store.teams.get({ teamId: caller.teamId }))?.slug ?? '';
  const found = await services.workflowFile({ team, id });
  return {
    origin: 'file',
    file: found?.file ?? fileName(team, id, definition),
    text: found?.text ?? null,
    applied: found === undefined ? null : found.hash === definitionHash,
  };
}

/** The workflow, if it exists. @throws Problem `workflow_of_file` when a file defines it */
async function ownWorkflow(store: Store, teamId: string, id: string): Promise<Workflow | undefined> {
  const workflow = await store.workflows.get({ teamId, id });
  if (workflow === undefined || isOfApi(workflow)) return workflow;
  const team = await store.teams.get({ teamId });
  const file = fileName(team?.slug ?? '', id, workflow.definition);
  throw new Problem('workflow_of_file', {
    sentence: `This workflow is defined by the file ${file} in the workflows directory: change it there, and run \`flowhook apply\``,
  });
}

function fileName(team: string, id: string, { source }: Definition): string {
  return `${team}/${id}.${source.type === 'module' ? 'mts' : 'yaml'}`;
}

/** @throws Problem `definition_invalid` */
async function checkedDefinition(
  { services, caller }: KeyedCall<'apiSecrets' | 'ceilings' | 'definitions'>,
  fields: Record<string, unknown>,
  { slug, id }: { slug: string; id: string },
) {
  const type = (fields.source as { type?: unknown } | null | undefined)?.type;
  if (!TYPES.includes(type)) {
    throw invalidBy([
      '`source.type` must be push or http, because workflows created over the API run no code of their own. ' +
        'Define other workflows in files',
    ]);
  }
  // A more deeply nested value can neither be written as JSON nor sent to the thread that checks definitions.
  if (isNestedDeeper(fields, MAX_LEVELS)) {
    throw invalidBy([`Lists and maps are nested more than ${MAX_LEVELS} levels deep`]);
  }
  const origins = [...(await secretsOf(services, slug))].map(
    ([name, secret]) => [name, { origins: secret.origins }] as const,
  );
  const checked = await services.definitions.check(caller.teamId, {
    json: JSON.stringify(fields),
    file: `${slug}/${id}.yaml`,
    ceilings: services.ceilings,
    secrets: new Map(origins),
    nowMs: services.store.now(),
  });
  if ('mistakes' in checked) {
    throw invalidBy(
      checked.mistakes.map(({ message }) => message),
      checked.omitted,
    );
  }
  return checked;
}

/** The secrets that a team may use. Empty if the operator's file of secrets cannot be read; the log says why. */
async function secretsOf(
  { apiSecrets, log }: KeyedCall<'apiSecrets'>['services'],
  slug: string,
): Promise<ReadonlyMap<string, ApiSecret>> {
  try {
    return await apiSecrets(slug);
  } catch (err) {
    log.warn({ err }, 'secrets.unreadable');
    return new Map();
  }
}

/** @param unnamed number of further mistakes */
function invalidBy(mistakes: readonly string[], unnamed = 0): Problem {
  const named = mistakes.slice(0, MAX_MISTAKES);
  const more = mistakes.length - named.length + unnamed;
  const sentence = more === 0 ? named.join('; ') : `${named.join('; ')}; and ${more} more`;
  return new Problem('definition_invalid', { sentence });
}
