/** Exports and erases the data of a person. */
import { erase, subjectOf } from '../../records/erase.ts';
import { exportPerson } from '../../records/export-person.ts';
import { as, boolean, integer, list, nullable, object, text } from '../../std/shape.ts';
import { bodyFields } from '../input/body.ts';
import { invalid, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { sendStream } from '../send-body.ts';

/** The longest email address or record ID, in characters: the limit of record IDs. */
const MAX_SUBJECT = 1_024;

const emailSchema = {
  type: 'string',
  minLength: 3,
  maxLength: MAX_SUBJECT,
  pattern: '[^@\\s]@[^@\\s]',
};

const counts = (description: string) =>
  list(object({ workflowId: nullable(text()), place: text(), count: integer() }), description);

export const erasePerson: Operation<KeyedCall<'erasure'>> = {
  id: 'erasePerson',
  group: 'Workflows',
  summary: 'Erase a person',
  description:
    'Removes the records with this email address (case-insensitive) or this ID from every version of the ' +
    'workflow. Also removes other data about the person: from the events, job logs, errors, run states and quarantine of ' +
    'the workflow, from the responses of receivers, and from requests to inspectors. Totals are adjusted and ETags change. A ' +
    'run in progress starts over. Repeating the call is harmless.',
  parameters: [pathParameter('workflowId', 'Workflow ID')],
  requestBody: jsonBody({
    type: 'object',
    description: 'Person to erase, by either `email` or `id`',
    properties: {
      email: emailSchema,
      id: { type: 'string', minLength: 1, maxLength: MAX_SUBJECT, description: 'Record ID' },
      dryRun: { type: 'boolean', description: '`true` to report without erasing' },
      suppress: { type: 'boolean', description: '`true` to also drop the person from later runs' },
    },
  }),
  answer: jsonResponse(
    'Erasure report',
    object({
      dryRun: boolean(),
      found: counts('Matches that were removed or redacted, or would be'),
      left: counts('Matches that remain: records of other people, and definitions'),
      suppressed: boolean(),
      disk: as(
        'Cleanup of the database files. `null` for a dry run. Fields whose value is unknown are `null`: on PostgreSQL, ' +
          'Flowhook cannot see the log, replicas and backups',
        nullable(
          object({
            logEmptied: nullable(boolean('`true` if the write-ahead log was emptied')),
            rewritten: boolean('`true` if the database was rewritten'),
            tracesLeft: nullable(boolean('`true` if traces of the person are left in the files')),
          }),
        ),
      ),
      backups: integer('Number of older copies of the database that may contain the person'),
    }),
  ),
  errors: { field_invalid: 'A field is not valid', workflow_not_found: 'No workflow found' },

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
    // The response has only the number of backups, because the names of their files are for the operator.
    return { ...report, backups: report.backups.length };
  },
};

function checked({ email, id, dryRun = false, suppress = false }: Record<string, unknown>) {
  if ((email === undefined) === (id === undefined)) invalid('Send either `email` or `id`');
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

export const exportPersonalData: Operation<KeyedCall<'erasure'>> = {
  id: 'exportPerson',
  weight: 'whole',
  group: 'Team',
  summary: 'Export the data of a person',
  description:
    'Returns everything that the team stores about a person, one JSON object per line: records in every stored version, ' +
    'events, delivery logs, errors, job logs and run states. Where data is about several people, only the part that ' +
    'mentions this person is returned. Each line has `place`, `workflowId` and the data found there. If the export fails, the connection is ' +
    'closed before the end of the response.',
  requestBody: jsonBody(
    { type: 'object', required: ['email'], properties: { email: emailSchema } },
    { example: { email: 'ada@example.com' } },
  ),
  answer: {
    description: 'One JSON object per line; empty if nothing was found',
    content: {
      'application/x-ndjson': {
        schema: { type: 'string' },
        example:
          '{"place":"record","workflowId":"people","id":"17","fromVersion":1,"untilVersion":null,"record":{"id":"17","name":"Ada Lovelace","email":"ada@example.com"}}\n',
      },
    },
  },
  errors: { field_invalid: '`email` is not an email address' },

  async handle(call) {
    const { services, caller, reply } = call;
    const { email } = await bodyFields(call, 'a JSON object with `email`');
    if (typeof email !== 'string' || email.length > MAX_SUBJECT) {
      invalid(
        `\`email\` must be a string of at most ${MAX_SUBJECT} characters: the email address of the person`,
      );
    }
    const entries = exportPerson(services.store, { teamId: caller.teamId, email });
    await services.store.audit.add({
      change: {
        teamId: caller.teamId,
        action: 'records.export',
        target: null,
        summary: 'data of a person',
        subject: subjectOf(services.erasure.sealer, { teamId: caller.teamId, email, id: null }),
      },
    });
    // The log line omits the email address, because personal data does not belong in logs.
    services.log.info({ teamId: caller.teamId, keyId: caller.keyId }, 'data.exported');
    reply.type('application/x-ndjson; charset=utf-8');
    return sendStream(call, lines(entries));
  },
};

async function* lines(entries: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const entry of entries) yield Buffer.from(`${entry}\n`);
}
