/** The manifest for Airbyte: the API documents its requests, and its cursor reaches all pages. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { KEY, PEOPLE, type Service, startService } from '../service.ts';

interface Option {
  inject_into: string;
  field_name: string;
}
interface Stream {
  name: string;
  incremental_sync?: { start_value: number; start_value_option: Option };
  retriever: {
    requester: {
      path: string;
      http_method: string;
      authenticator: { inject_into: Option };
    };
    paginator?: {
      page_size_option: Option;
      page_token_option: Option;
      pagination_strategy: { cursor_value: string };
    };
  };
}

const read = (...path: string[]) => readFile(join(import.meta.dirname, ...path), 'utf8');
const manifest = parse(await read('manifest.yaml'), { merge: true }) as { streams: Stream[] };
const { paths } = JSON.parse(await read('../../../openapi.json'));
const [records, changes] = manifest.streams;

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test('every request of the manifest is an operation that openapi.json describes', () => {
  for (const { retriever, incremental_sync } of manifest.streams) {
    const { path, http_method, authenticator } = retriever.requester;
    const template = path.replace("{{ config['workflow_id'] | urlencode }}", '{workflowId}');
    const operation = paths[template]?.[http_method.toLowerCase()];
    assert.ok(operation, `${http_method} ${template}`);
    assert.deepEqual(authenticator.inject_into, {
      type: 'RequestOption',
      inject_into: 'header',
      field_name: 'x-api-key',
    });
    const { page_size_option, page_token_option } = retriever.paginator ?? {};
    const sent = [page_size_option, page_token_option, incremental_sync?.start_value_option].flatMap(
      (option) => option?.field_name ?? [],
    );
    const known = operation.parameters.map(({ name }: { name: string }) => name);
    for (const name of sent) assert.ok(known.includes(name), name);
  }
});

test('the cursor from the Link header reaches all pages, and changes start at version 0', async () => {
  await service.run();
  const { cursor_value } = records?.retriever.paginator?.pagination_strategy ?? assert.fail();
  const pattern = /regex_search\('(.*)'\)/.exec(cursor_value)?.[1] ?? assert.fail(cursor_value);
  const found: unknown[] = [];
  const path = records?.retriever.requester.path.replace(/\{\{.*?\}\}/, 'people');
  let cursor: string | undefined = '';
  while (cursor !== undefined) {
    const query = new URLSearchParams({ limit: '2', ...(cursor === '' ? {} : { cursor }) });
    const answer = await fetch(`${service.url}${path}?${query}`, { headers: { 'x-api-key': KEY } });
    found.push(...((await answer.json()) as unknown[]));
    const next = /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
    cursor = next === undefined ? undefined : new RegExp(pattern).exec(next)?.[1];
  }
  assert.deepEqual(found, PEOPLE);

  const since = await service.ask(
    'GET',
    `${changes?.retriever.requester.path.replace(/\{\{.*?\}\}/, 'people')}?${changes?.incremental_sync?.start_value_option.field_name}=0`,
  );
  for (const change of since) assert.equal(change.version, 1);
});
