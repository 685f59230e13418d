/** The reference of all errors, made of their table. */
import { ERRORS } from '../../src/model/error.ts';
import { table } from './table.ts';

const HEAD = `# Errors

Every error that the service returns, by status: its code and its sentence. Generated from \`src/model/error.ts\`.

The body of an error is \`{ "error": "…" }\`, one sentence that names the next step. Errors about a particular field or setting
name it, in place of the general sentence listed here. Programs should read the header \`x-error-code\`: a code never changes its
meaning. \`x-request-id\` identifies the request in the log. \`/docs\` and \`/openapi.json\` of the service list the errors of
each operation.

The five operations of the contract answer with 200, 400, 401 and 404 only: the sentence of an error that has another status
there ends with that status.

A request to any other operation whose \`Accept\` prefers \`application/problem+json\` to other JSON gets problem details
(RFC 9457): \`type\` (\`urn:flowhook:error:\` and the code), \`title\`, \`status\`, \`detail\` (the sentence), \`code\`
and \`requestId\`.
`;

/** What a client does about each status. */
const STATUSES: Readonly<Record<number, readonly [title: string, then: string]>> = {
  400: ['Bad request', 'The request is wrong. Change it: the same request is refused again.'],
  401: ['Unauthorized', 'Send another key. `www-authenticate: ApiKey` comes with it.'],
  403: [
    'Forbidden',
    'Use a key that has the scope. `origin_refused` is an error of the dashboard’s sessions only.',
  ],
  404: ['Not found', 'It is not there, or it is of another team, which nobody can tell apart.'],
  405: ['Method not allowed', 'The header `allow` lists the methods that the path takes.'],
  408: ['Took too long', 'Send it in parts, or raise `limits.timeout` of the workflow.'],
  409: [
    'Conflict',
    'Something else is under way or in charge, or the job is in another state. `retry-after` says when to come back, where that helps.',
  ],
  410: ['Gone', 'It was there and will not come back.'],
  412: ['Precondition failed', 'Somebody was quicker: read, decide, and write again.'],
  413: ['Too large', 'Send less.'],
  415: ['Unsupported', 'Send it in another form.'],
  416: ['Range not satisfiable', 'Ask without `range`.'],
  422: ['Refused', 'What was sent is at fault; `x-job-reason` says why.'],
  429: ['Too many', 'Only where the operator has set limits. Wait as long as `retry-after` says.'],
  431: ['Headers too large', 'Send fewer.'],
  500: ['Internal', 'A mistake of the service. Tell whoever runs it the `x-request-id`.'],
  501: ['Not implemented', 'Send the body in another transfer coding.'],
  503: [
    'Unavailable',
    'Nothing was done. Come back after `retry-after` seconds, with the same `idempotency-key` where there is one.',
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
