/** POST /v1/export: everything that the team holds about a person. A POST, since addresses do not belong in URLs. */
import { subjectOf } from '../../records/erase.ts';
import { exportPerson } from '../../records/export-person.ts';
import { bodyFields } from '../body.ts';
import { jsonBody } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { sendStream } from '../send-body.ts';
import { invalid } from '../values.ts';
import { emailSchema, MAX_SUBJECT } from './erase.ts';

export const exportAboutPerson: Operation<KeyedCall> = {
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
  refusals: { field_invalid: 'Bad request' },

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
