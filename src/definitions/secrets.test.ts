/** The sources of secrets, and that no error shows a secret. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { directoryOf } from '../../test/support/jobs/sources.ts';
import { apiSecrets, teamSecrets } from './secrets.ts';

test('secrets come from the file beside the workflows, and environment variables win', async (t) => {
  const directory = await directoryOf(t, {
    'secrets/my-team.yaml': 'TOKEN: from-file\nOther_1: "123"\n',
    'secrets/else.yaml': 'TOKEN: foreign\n',
    'workflows/my-team/x.yaml': '',
  });
  const environment = new Map([
    ['FLOWHOOK_SECRET__MY_TEAM__TOKEN', 'from-setting'],
    ['FLOWHOOK_SECRET__MY__TEAM__TOKEN', 'foreign'],
    ['FLOWHOOK_SECRET__MY_TEAM__A__B', 'of team my-team--a'],
    ['FLOWHOOK_SECRET__MY_TEAM___X', 'of team my-team-'],
    ['TOKEN', 'nobody'],
  ]);
  const secrets = await teamSecrets({
    directory: join(directory, 'workflows'),
    team: 'my-team',
    environment,
  });
  assert.deepEqual([...secrets].sort(), [
    ['Other_1', '123'],
    ['TOKEN', 'from-setting'],
  ]);
});

test('workflows made over the API get only secrets permitted to them, with the permitted hosts', async (t) => {
  const directory = await directoryOf(t, {
    'secrets/acme.yaml':
      'PLAIN: x\n' +
      'TOKEN: { value: from-file, api: true, hosts: [API.example.com, "api.example.com:8443", "http://localhost:80"] }\n' +
      'SET: { api: true, hosts: [a.example] }\nUNSET: { api: true, hosts: [a.example] }\n',
  });
  const place = {
    directory: join(directory, 'workflows'),
    team: 'acme',
    environment: new Map([['FLOWHOOK_SECRET__ACME__SET', 'from-setting']]),
  };
  const origins = ['https://api.example.com', 'https://api.example.com:8443', 'http://localhost'];
  assert.deepEqual(
    await apiSecrets(place),
    new Map([
      ['TOKEN', { value: 'from-file', origins: new Set(origins) }],
      ['SET', { value: 'from-setting', origins: new Set(['https://a.example']) }],
    ]),
  );
  assert.equal((await teamSecrets(place)).get('TOKEN'), 'from-file');
});

test('without a file, secrets come from environment variables alone', async (t) => {
  const directory = await directoryOf(t, {});
  const environment = new Map([['FLOWHOOK_SECRET__ACME__A', 'b']]);
  const secrets = await teamSecrets({ directory: join(directory, 'workflows'), team: 'acme', environment });
  assert.deepEqual([...secrets], [['A', 'b']]);
});

test('the error about a broken file shows nothing of its content', async (t) => {
  const cases: [text: string, sentence: RegExp][] = [
    ['TOKEN: hunter2\nA: [hunter2', /acme\.yaml:\d is not valid YAML \([A-Z_]+\)$/],
    ['- hunter2', /must be a map of names to strings/],
    ['TOKEN: 12345', /TOKEN must be a string; put numbers and dates in quotes/],
    ['TOKEN: { value: hunter2 }', /TOKEN must be a string/],
    ['TOKEN: { value: hunter2, api: true }', /TOKEN needs `hosts`/],
    ['TOKEN: { value: hunter2, api: true, hosts: [] }', /TOKEN needs `hosts`/],
    ['TOKEN: { value: hunter2, api: yes, hosts: [x] }', /TOKEN has an `api` that is not true/],
    ['TOKEN: { value: 12345, api: true, hosts: [x] }', /TOKEN has a `value` that is not a string/],
    [
      'TOKEN: { value: hunter2, api: true, hosts: ["*.example.com"] }',
      /TOKEN has "\*\.example\.com" in `hosts`/,
    ],
    ['TOKEN: { value: hunter2, api: true, hosts: [example.com/path] }', /TOKEN has "example/],
    ['A__B: hunter2', /single underscores between them, found "A__B"/],
  ];
  for (const [text, sentence] of cases) {
    const directory = await directoryOf(t, { 'secrets/acme.yaml': text });
    const reading = teamSecrets({
      directory: join(directory, 'workflows'),
      team: 'acme',
      environment: new Map(),
    });
    await assert.rejects(reading, (error: Error) => {
      assert.match(error.message, sentence);
      assert.doesNotMatch(error.message, /hunter2|12345/);
      return true;
    });
  }
});
