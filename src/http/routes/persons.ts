/** What is held about a person: all of it, and its erasure. */
import { erase, subjectOf } from '../../records/erase.ts';
import { exportPerson } from '../../records/export-person.ts';
import { as, boolean, integer, list, nullable, object, text } from '../../std/shape.ts';
import { bodyFields } from '../input/body.ts';
import { invalid, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { sendStream } from '../send-body.ts';

/** The longest address or id, in characters: the same as for the id of a record. */
export const MAX_SUBJECT = 1_024;

export const emailSchema = {
  type: 'string',
  minLength: 3,
  maxLength: MAX_SUBJECT,
  pattern: '[^@\\s]@[^@\\s]',
};

const counts = (description: string) =>
  list(object({ workflowId: nullable(text()), place: text(), count: integer() }), description);

export const eraseFromWorkflow: Operation<KeyedCall<'erasure'>> = {
  id: 'eraseFromWorkflow',
  group: 'Workflows',
  summary: 'Erases a person from the workflow',
  description:
    'Removes the records with this address (without regard to case) or this id from every version, and the ' +
    'person from events, from what receivers answered, from errors and from what runs left for later ones. ' +
    'Totals stay true; ETags change. A run under way starts over. Harmless to repeat.',
  parameters: [pathParameter('workflowId', 'Workflow ID')],
  requestBody: jsonBody({
    type: 'object',
    description: 'Either `email` or `id`',
    properties: {
      email: emailSchema,
      id: { type: 'string', minLength: 1, maxLength: MAX_SUBJECT, description: 'The id of a record' },
      dryRun: { type: 'boolean', description: 'Only look' },
      suppress: { type: 'boolean', description: 'Keep the person out of later runs as well' },
    },
  }),
  answer: jsonResponse(
    'What was found, and what became of it',
    object({
      dryRun: boolean(),
      found: counts('What was removed or redacted, or would be'),
      left: counts('What mentions the person and stays: records of others, definitions'),
      suppressed: boolean(),
      disk: as(
        'Whether the write-ahead log was emptied, the database rewritten, and traces are left in it; null where ' +
          'that cannot be known: PostgreSQL keeps its log, its replicas and its backups to itself',
        nullable(
          object({ logEmptied: nullable(boolean()), rewritten: boolean(), tracesLeft: nullable(boolean()) }),
        ),
      ),
      backups: integer('How many older copies of the database may hold the person'),
    }),
  ),
  errors: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { services, caller, params } = call;
    const fields = checked(await bodyFields(call, 'a JSON object with `email` or `id`'));
    const report = await erase(services.erasure, {
      teamId: caller.teamId,
      workflowId: workflowIdFrom(params.workflowId),
      ...fields,
    });
    services.log.info(
      { teamId: caller.teamId, keyId: caller.keyId, dryRun: report.dryRun, found: report.found },
      'data.erased',
    );
    // The names of the files are only for the operator.
    return { ...report, backups: report.backups.length };
  },
};

function checked({ email, id, dryRun = false, suppress = false }: Record<string, unknown>) {
  if ((email === undefined) === (id === undefined)) invalid('Give either `email` or `id`');
  const subject = email ?? id;
  if (typeof subject !== 'string' || subject.trim() === '' || subject.length > MAX_SUBJECT) {
    return invalid(`\`email\` or \`id\` must be a string of 1 to ${MAX_SUBJECT} characters`);
  }
  if (typeof dryRun !== 'boolean' || typeof suppress !== 'boolean') {
    return invalid('`dryRun` and `suppress` must be true or false');
  }
  return email === undefined
    ? { email: null, id: subject, dryRun, suppress }
    : { email: subject, id: null, dryRun, suppress };
}

export const exportAboutPerson: Operation<KeyedCall<'erasure'>> = {
  id: 'exportAboutPerson',
  weight: 'whole',
  group: 'Team',
  summary: 'Everything that is held about a person, one JSON object a line',
  description:
    'Their records in every version that is kept, events, delivery logs, errors, logs of jobs and states. Of what ' +
    'belongs to others only that it mentions the person. Each line has `place` and `workflowId`, and what was found ' +
    'there. The answer ends early, and the connection with it, when something fails.',
  requestBody: jsonBody(
    { type: 'object', required: ['email'], properties: { email: emailSchema } },
    { example: { email: 'ada@example.com' } },
  ),
  answer: {
    description: 'The lines; none when nothing was found',
    content: {
      'application/x-ndjson': {
        schema: { type: 'string' },
        example:
          '{"place":"record","workflowId":"people","id":"17","fromVersion":1,"untilVersion":null,"record":{"id":"17","name":"Ada Lovelace","email":"ada@example.com"}}\n',
      },
    },
  },
  errors: { field_invalid: 'Bad request' },

  async handle(call) {
    const { services, caller, reply } = call;
    const { email } = await bodyFields(call, 'a JSON object with `email`');
    if (typeof email !== 'string' || email.length > MAX_SUBJECT) {
      invalid(`\`email\` must be a string of at most ${MAX_SUBJECT} characters: the address of the person`);
    }
    const entries = exportPerson(services.store, { teamId: caller.teamId, email });
    await services.store.audit.add({
      change: {
        teamId: caller.teamId,
        action: 'records.export',
        target: null,
        summary: 'all that is held about a person',
        subject: subjectOf(services.erasure.sealer, { teamId: caller.teamId, email, id: null }),
      },
    });
    // Without the person's address: it does not belong in a log.
    services.log.info({ teamId: caller.teamId, keyId: caller.keyId }, 'data.exported');
    reply.type('application/x-ndjson; charset=utf-8');
    return sendStream(call, lines(entries));
  },
};

async function* lines(entries: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const entry of entries) yield Buffer.from(`${entry}\n`);
}
