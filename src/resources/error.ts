/** Responses that any operation may return: a message, an error, or problem details. */
import { exactly, integer, named, object, optional, text } from '../std/shape.ts';

export const messageResource = named('Message', exactly(object({ message: text() })), {
  message: 'Job queued',
});

export const errorResource = named(
  'Error',
  exactly(object({ error: text('Human-readable error: the problem and the next step') })),
  { error: 'No workflow found' },
);

export const problemResource = named(
  'Problem',
  exactly(
    object(
      {
        type: {
          ...text(),
          schema: {
            type: 'string',
            format: 'uri',
            description: '`urn:flowhook:error:` followed by the error code',
          },
        },
        title: text('General meaning of the error code'),
        status: integer(),
        detail: text('Human-readable error, the same text as `error` in `application/json`'),
        code: text('Error code, as in the header `x-error-code`'),
        requestId: text('Request ID, as in the header `x-request-id`'),
        jobId: optional(text('ID of the job that conflicts or failed, as in the header `x-job-id`')),
      },
      'Error as problem details (RFC 9457), returned in place of `Error` if `Accept` prefers `application/problem+json`. ' +
        'These operations never return it: `readWorkflowData`, `queueWorkflowJob`, `listWebhooks`, `subscribeWebhook`, ' +
        '`unsubscribeWebhook` and `unsubscribeWebhookByPath`',
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
