/** Definitions of workflows over the API: those of kind `push` and `http`, which run no code of their own. */
import { createHash } from 'node:crypto';
import type { ApiSecret } from '../../definitions/api-bounds.ts';
import { MAX_LEVELS } from '../../definitions/definition.ts';
import { found, Problem } from '../../model/error.ts';
import { isNestedDeeper } from '../../model/record.ts';
import {
  type Definition,
  isOfApi,
  MODES,
  ON_INVALID,
  OVERLAPS,
  ofApiHash,
  type Workflow,
} from '../../model/workflow.ts';
import { messageResource } from '../../resources/error.ts';
import { shownWorkflow, workflowResource } from '../../resources/workflow.ts';
import { anyObject, boolean, choice, nullable, object, optional, text } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { checkIfMatch, IF_MATCH, sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import { flagParameter } from '../input/query.ts';
import { workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const TYPES: readonly unknown[] = ['push', 'http'];
/** Further mistakes are only counted. */
const MAX_MISTAKES = 10;

const DRY_RUN = flagParameter('dryRun', 'Only says whether the definition could be taken');
const parameters = [pathParameter('workflowId', 'Workflow ID')];
const NO_ID =
  'This cannot be the id of a workflow: use 1 to 200 characters without slashes, backslashes or control characters';
const errors = {
  precondition_failed: 'It was changed since the answer that `If-Match` names',
  workflow_of_file: 'The workflow is defined by a file of the operator',
};

/** PUT /v1/workflows/{workflowId} */
export const putWorkflow: Operation<KeyedCall<'apiSecrets' | 'ceilings' | 'definitions'>> = {
  id: 'putWorkflow',
  group: 'Workflows',
  summary:
    'Makes a workflow that receives its records by push or reads them over HTTP, or changes one made here',
  description:
    'The body is what a workflow file holds, as JSON. One that was deleted comes back with its records. Workflows ' +
    'of other kinds come from the files of the operator. An `http` source may use a secret, as `$' +
    '{secret.NAME}` in ' +
    "`headers`, `body`, `form` and `auth`, when the operator has marked it with `api: true` in the team's secrets " +
    'file, and only where all that it is sent to is among the `hosts` that stand there. `proxy` is refused.',
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
          description: 'What stands under `source` in a workflow file',
          additionalProperties: true,
          properties: {
            type: { enum: TYPES },
            url: { description: 'Of `http`: one address, or a list of them' },
          },
        },
        fields: { type: 'object', description: 'Of `http`: where each field of a record is found' },
        key: { type: 'array', items: { type: 'string' }, description: "What makes a record's id" },
        mode: { enum: MODES },
        onInvalid: { enum: ON_INVALID },
        schedule: { type: 'object', description: 'Of `http`: `cron` with `timezone`, or `every`' },
        overlap: { enum: OVERLAPS },
        priority: { type: 'integer', description: 'Among the jobs of the team that wait: higher ones first' },
        retries: { type: 'object', description: 'Of `http`: `max`, `backoff`' },
        guards: { type: 'object', description: '`minRecords`, `maxDropPercent`' },
        limits: { type: 'object', description: '`timeout`, `memory`, `output`, `records`' },
      },
    },
    { example: { name: 'People', source: { type: 'push' }, key: ['email'], mode: 'upsert' } },
  ),
  answer: jsonResponse(
    'The workflow; without it, that it could be made so',
    object({ message: text(), workflow: optional(workflowResource) }),
  ),
  errors: {
    definition_invalid: 'The definition is not valid: every mistake by the name of the setting',
    field_invalid: 'A parameter has a bad value',
    workflow_not_found: 'This cannot be the id of a workflow',
    ...errors,
  },

  async handle(call) {
    const { services, caller, params, request } = call;
    const { store } = services;
    const { teamId } = caller;
    const dryRun = DRY_RUN.read(call.query);
    const fields = await bodyFields(call, 'a JSON object with what a workflow file holds');
    const id = workflowIdFrom(params.workflowId, NO_ID);
    const stored = await ownWorkflow(store, teamId, id);
    if (stored === undefined && request.headers['if-match'] !== undefined) {
      throw new Problem('precondition_failed', {
        sentence: 'There is no such workflow yet: leave If-Match out',
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
  summary: 'Shows what a workflow is made of: as it was written, and with every default',
  description:
    'The `ETag` serves as `If-Match` of a change. A file is told by the nodes that have it, and may be newer than ' +
    'what is applied.',
  parameters,
  answer: jsonResponse(
    'The definition',
    object({
      origin: choice(['file', 'api'], 'Where it is changed'),
      file: nullable(text('In the workflows directory')),
      text: nullable(text('As it was written: YAML, TypeScript or JSON')),
      applied: nullable(boolean('Whether `text` is what runs; null without it')),
      definition: anyObject('With every default filled in'),
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
  summary: 'Archives a workflow that was made here: requests for it then return 404',
  description: 'Its records and webhooks are kept for when it is made again.',
  parameters,
  answer: jsonResponse('The workflow is archived', messageResource),
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
      '`source.type` must be push or http: over the API only workflows are made that run no code of their own. ' +
        'Others come from the files of the operator',
    ]);
  }
  // What is nested more deeply can neither be written as JSON nor sent to the thread.
  if (isNestedDeeper(fields, MAX_LEVELS)) {
    throw invalidBy([`Its lists and maps lie in each other more than ${MAX_LEVELS} levels deep`]);
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
      checked.untold,
    );
  }
  return checked;
}

/** Empty when the operator's file cannot be read: only the log says why. */
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

/** @param untold how many mistakes there are beyond these */
function invalidBy(mistakes: readonly string[], untold = 0): Problem {
  const told = mistakes.slice(0, MAX_MISTAKES);
  const more = mistakes.length - told.length + untold;
  const sentence = more === 0 ? told.join('; ') : `${told.join('; ')}; and ${more} more`;
  return new Problem('definition_invalid', { sentence });
}
