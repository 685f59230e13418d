/** Generates the reference of all errors from their table. */
import { ERRORS } from '../../src/model/error.ts';
import { table } from './table.ts';

const HEAD = `# Errors

Every error that the service returns, by status: its code and its sentence. Generated from \`src/model/error.ts\`.

The body of an error is \`{ "error": "…" }\`, one sentence that names the next step. Errors about a particular field or setting
name it, in place of the general sentence listed here. Programs should read the header \`x-error-code\`: a code never changes its
meaning. \`x-request-id\` identifies the request in the log. \`/docs\` and \`/openapi.json\` of the service list the errors of
each operation.

The five operations of the contract respond only with 200, 400, 401 and 404. For an error that has another status there, the
table adds that status to the sentence.

A request to any other operation whose \`Accept\` prefers \`application/problem+json\` to other JSON gets problem details
(RFC 9457): \`type\` (\`urn:flowhook:error:\` and the code), \`title\`, \`status\`, \`detail\` (the sentence), \`code\`
and \`requestId\`.
`;

/** The next step of a client for each status. */
const STATUSES: Readonly<Record<number, readonly [title: string, then: string]>> = {
  400: ['Bad request', 'Correct the request. The same request will fail again.'],
  401: ['Unauthorized', 'Send a valid API key. The response has the header `www-authenticate: ApiKey`.'],
  403: [
    'Forbidden',
    'Use a key that has the required scope. `origin_refused` occurs only in sessions of the dashboard.',
  ],
  404: [
    'Not found',
    'The object does not exist, or belongs to another team. The response is the same in both cases.',
  ],
  405: ['Method not allowed', 'Use a method that the header `allow` lists.'],
  408: ['Timeout', 'Send the records in parts, or raise `limits.timeout` of the workflow.'],
  409: [
    'Conflict',
    'The request conflicts with the current state, such as an unfinished job. If waiting helps, `retry-after` has the number of seconds.',
  ],
  410: ['Gone', 'The object existed, and is permanently deleted, or its link has expired.'],
  412: [
    'Precondition failed',
    'The object has changed. Read it again, and repeat the change on the new state.',
  ],
  413: ['Too large', 'Send less data.'],
  415: ['Unsupported media type', 'Send the body in a supported format.'],
  416: ['Range not satisfiable', 'Repeat the request without the header `range`.'],
  422: ['Unprocessable', 'Correct the data. `x-job-reason` has the reason why the job failed.'],
  429: [
    'Too many requests',
    'Wait for `retry-after` seconds. Occurs only if the operator has set rate limits.',
  ],
  431: ['Headers too large', 'Send fewer or shorter headers.'],
  500: ['Internal error', 'The service has a bug. Report the `x-request-id` to its operator.'],
  501: ['Not implemented', 'Send the body with another transfer coding.'],
  502: ['Bad gateway', 'Another server failed, which the request needs. The sentence has its words.'],
  503: [
    'Unavailable',
    'The request had no effect. Repeat it after `retry-after` seconds, with the same `idempotency-key` if it had one.',
  ],
  505: ['Version not supported', 'Send HTTP/1.1.'],
};

export const errorsReference: string = [
  HEAD,
  ...[...Map.groupBy(Object.entries(ERRORS), ([, [status]]) => status)]
    .sort(([one], [other]) => one - other)
    .map(([status, of]) => {
      const [title, then] = STATUSES[status] ?? unknown(status);
      const rows = of.map(([code, [, sentence, ofContract]]: (typeof of)[number]) => [
        `\`${code}\``,
        ofContract === undefined ? sentence : `${sentence} (${ofContract} on the five)`,
      ]);
      return `## ${status} ${title}\n\n${then}\n\n${table(['Code', 'Sentence'], rows)}\n`;
    }),
].join('\n');

function unknown(status: number): never {
  throw new Error(`site/reference/errors.ts does not say what a client does about the status ${status}`);
}
