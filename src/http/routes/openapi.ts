/** The OpenAPI document as JSON, as YAML, and as a page for people. */
import { anyObject } from '../../std/shape.ts';
import { yaml } from '../../std/yaml.ts';
import { ConstantText } from '../caching.ts';
import { jsonResponse } from '../openapi/content.ts';
import { describeRoutes } from '../openapi/describe-routes.ts';
import { referencePage } from '../openapi/reference-page.ts';
import type { Call, Operation, Route } from '../route.ts';

/** Runs no script and loads nothing, even if a description contains HTML. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/** The three operations. `routes` is a function because they are part of the table that they describe. */
export function openApiOperations(routes: () => readonly Route[]): {
  readOpenApi: Operation<Call>;
  readOpenApiYaml: Operation<Call>;
  readReference: Operation<Call<'hasGuide'>>;
} {
  const description = once(() => describeRoutes(routes()));
  const inJson = once(
    () => new ConstantText('application/json; charset=utf-8', JSON.stringify(description())),
  );
  // Strings are quoted so that parsers of YAML 1.1, such as PyYAML, read them as YAML 1.2 does.
  const inYaml = once(() => {
    const text = yaml().stringify(description(), { aliasDuplicateObjects: false, version: '1.1' });
    return new ConstantText('application/yaml; charset=utf-8', text);
  });
  const page = (guide?: string) =>
    once(() => new ConstantText('text/html; charset=utf-8', referencePage(description(), { guide })));
  const pages = { alone: page(), withGuide: page('/docs/guide/') };
  return {
    /** GET /openapi.json */
    readOpenApi: {
      id: 'readOpenApi',
      group: 'Service',
      etag: true,
      summary: 'Read the OpenAPI document',
      description: 'Returns this document, as OpenAPI 3.1 in JSON.',
      answer: jsonResponse('OpenAPI document', anyObject()),

      async handle(call) {
        return inJson().send(call);
      },
    },

    /** GET /openapi.yaml */
    readOpenApiYaml: {
      id: 'readOpenApiYaml',
      group: 'Service',
      etag: true,
      summary: 'Read the OpenAPI document as YAML',
      description: 'Returns this document, as OpenAPI 3.1 in YAML.',
      answer: {
        description: 'OpenAPI document',
        content: { 'application/yaml': { schema: { type: 'object' } } },
      },

      async handle(call) {
        return inYaml().send(call);
      },
    },

    /** GET /docs */
    readReference: {
      id: 'readReference',
      group: 'Service',
      etag: true,
      summary: 'Read the API reference',
      description: 'Returns this document as an HTML page.',
      answer: { description: 'HTML page', content: { 'text/html': { schema: { type: 'string' } } } },

      async handle(call) {
        call.reply.header('content-security-policy', PAGE_POLICY);
        return (call.services.hasGuide ? pages.withGuide : pages.alone)().send(call);
      },
    },
  };
}

/** Caches the result of the first call. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
