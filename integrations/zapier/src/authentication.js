/** The connection: the URL of the user's service and an API key of a team. */
import { ask, baseUrl } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @throws `z.errors.Error` for a key that cannot fill the drop-downs
 */
async function test(z, bundle) {
  const { data } = await ask(z, bundle, { path: '/v1/me' });
  if (typeof data?.team?.slug !== 'string') {
    throw new z.errors.Error(
      `The service at ${baseUrl(z, bundle)} is not Flowhook. Enter the base URL of Flowhook, such as https://flowhook.example.com`,
      'BaseUrl',
    );
  }
  if (!data.key.scopes.includes('read')) {
    throw new z.errors.Error(
      'This API key lacks the scope "read". Create one with the scopes read, queue and webhooks (the default scopes)',
      'scope_missing',
    );
  }
  return {
    team: data.team.slug,
    teamId: data.team.id,
    key: data.key.name,
    host: new URL(baseUrl(z, bundle)).host,
  };
}

/**
 * @param {ZObject} _z
 * @param {Bundle} bundle with the result of `test` as its `inputData`
 */
function connectionLabel(_z, bundle) {
  return `Team ${bundle.inputData.team} at ${bundle.inputData.host}`;
}

export const authentication = {
  type: 'custom',
  test,
  connectionLabel,
  fields: [
    {
      key: 'baseUrl',
      label: 'Base URL',
      type: 'string',
      required: true,
      placeholder: 'https://flowhook.example.com',
      helpText: 'The address of your Flowhook, which Zapier must be able to reach over the Internet.',
    },
    {
      key: 'apiKey',
      label: 'API Key',
      type: 'password',
      required: true,
      helpText:
        'A key of one team with the scopes read, queue and webhooks: `flowhook keys create --team default --name zapier`. It is shown once.',
    },
  ],
};
