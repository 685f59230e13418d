/** What every operation may answer: a message, an error, and an error in detail. */
import { exactly, integer, named, object, optional, text } from '../std/shape.ts';

export const messageResource = named('Message', exactly(object({ message: text() })), {
  message: 'Job queued',
});

export const errorResource = named(
  'Error',
  exactly(object({ error: text('What is wrong, and what to do next') })),
  { error: 'No workflow found' },
);

/** Problem details. */
export const problemResource = named(
  'Problem',
  exactly(
    object(
      {
        type: {
          ...text(),
          schema: { type: 'string', format: 'uri', description: '`urn:flowhook:error:` and the code' },
        },
        title: text('What the code means in general'),
        status: integer(),
        detail: text('What is wrong, and what to do next: the `error` of other answers'),
        code: text('As in `x-error-code`'),
        requestId: text('As in `x-request-id`'),
        jobId: optional(text('As in `x-job-id`: the job in the way, or the one that failed')),
      },
      'An error as problem details (RFC 9457), for requests whose `Accept` names `application/problem+json`',
    ),
  ),
  {
    type: 'urn:flowhook:error:workflow_not_found',
    title: 'No workflow found',
    status: 404,
    detail: 'No workflow found',
    code: 'workflow_not_found',
    requestId: '01fdb1c2-9a53-4c1f-8d53-0d6c2a8f2f10',
  },
);
