/** The URL of Flowhook and the key of a team, tested with `GET /v1/me`, which accepts any valid key. */
import type {
  IAuthenticateGeneric,
  ICredentialTestRequest,
  ICredentialType,
  Icon,
  INodeProperties,
} from 'n8n-workflow';

export class FlowhookApi implements ICredentialType {
  name = 'flowhookApi';

  displayName = 'Flowhook API';

  documentationUrl = 'https://github.com/flowhook/flowhook/tree/main/integrations/n8n#readme';

  icon: Icon = { light: 'file:../icons/flowhook.svg', dark: 'file:../icons/flowhook.dark.svg' };

  properties: INodeProperties[] = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      default: '',
      required: true,
      placeholder: 'https://flowhook.example.com',
      description: 'The address at which n8n reaches Flowhook, without /v1',
    },
    {
      displayName: 'API Key',
      name: 'apiKey',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      required: true,
      description:
        'A key of one team, from flowhook keys create --team default --name n8n. Scopes: read for lists and data, queue for jobs and pushes, webhooks for the trigger.',
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: 'generic',
    properties: { headers: { 'x-api-key': '={{$credentials.apiKey}}' } },
  };

  test: ICredentialTestRequest = {
    request: {
      baseURL: '={{$credentials.baseUrl.trim().replace(/\\/+$/, "").replace(/\\/v1$/, "")}}',
      url: '/v1/me',
    },
  };
}
