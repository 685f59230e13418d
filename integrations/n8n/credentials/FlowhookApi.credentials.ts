/** Where Flowhook is, and the key of a team; tried out with `GET /v1/me`, which takes every good key. */
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

  icon: Icon = { light: 'file:../icons/flowhook.svg', dark: 'file:../icons/flowhook.dark.svg' };

  properties: INodeProperties[] = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      default: '',
      required: true,
      placeholder: 'https://flowhook.example.com',
      description: 'Where n8n reaches Flowhook, without /v1',
    },
    {
      displayName: 'API Key',
      name: 'apiKey',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      required: true,
      description:
        'Of one team, from flowhook keys create --team default --name n8n. Scopes: read fills the lists and reads data, queue runs jobs and pushes, webhooks is for the trigger.',
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
