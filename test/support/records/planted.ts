/** Secrets and personal data that a test plants in many places, to find out where they leak. */

/** The planted texts by place. Each text contains its place, so that a finding shows where it came from. */
export const PLANTED = {
  bootstrapKey: 'planted-bootstrap-key-4711',
  wrongKey: 'fh_planted-wrong-key-4711',
  bearer: 'planted-bearer-4711',
  cookie: 'planted-cookie-4711',
  header: 'planted-header-4711',
  query: 'planted-query-4711',
  path: 'planted-path-4711',
  body: 'planted-body-4711',
  malformed: 'planted-malformed-4711',
  record: 'planted-record-4711',
  brokenRecord: 'planted-broken-record-4711',
  urlPassword: 'planted-url-password-4711',
  urlQuery: 'planted-url-query-4711',
  webhookHeader: 'planted-webhook-header-4711',
  webhookAnswer: 'planted-webhook-answer-4711',
  words: 'planted-words-4711',
  workflowSecret: 'planted-workflow-secret-4711',
  sourceAnswer: 'planted-source-answer-4711',
  publicPassword: 'planted-public-password-4711',
  encryptionKey: Buffer.from('planted-encryption-key-4711-4711').toString('base64'),
  email: 'ada.planted@example.com',
} as const;

/** The planted texts in an output, each with its line. Also finds parts of the email address, and its encoded forms. */
export function findPlanted(output: string): string[] {
  const needles = Object.entries({ ...PLANTED, email: 'ada.planted' });
  return output
    .split('\n')
    .flatMap((line) =>
      needles.filter(([, text]) => line.includes(text)).map(([place]) => `${place}: ${line.slice(0, 600)}`),
    );
}
