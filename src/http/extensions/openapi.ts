/** The OpenAPI document: as JSON and YAML for programs, as a page for people. */
import { yaml } from '../../std/yaml.ts';
import { jsonResponse } from '../openapi/content.ts';
import { describeRoutes } from '../openapi/describe-routes.ts';
import { referencePage } from '../openapi/reference-page.ts';
import type { Call, Operation, Route } from '../route.ts';

/** No script runs and nothing is loaded, whatever a description contains. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/** The three operations. They are part of the table that they describe, hence the function. */
export function openApiOperations(routes: () => readonly Route[]): {
  readOpenApi: Operation<Call>;
  readOpenApiYaml: Operation<Call>;
  readReference: Operation<Call>;
} {
  let made: ReturnType<typeof describeRoutes> | undefined;
  const description = () => {
    made ??= describeRoutes(routes());
    return made;
  };
  let inYaml: string | undefined;
  const pages = new Map<string | undefined, string>();
  return {
    /** GET /openapi.json */
    readOpenApi: {
      id: 'readOpenApi',
      group: 'Service',
      summary: 'This description, as OpenAPI 3.1',
      answer: jsonResponse('The description', { type: 'object' }),

      async handle() {
        return description();
      },
    },

    /** GET /openapi.yaml */
    readOpenApiYaml: {
      id: 'readOpenApiYaml',
      group: 'Service',
      summary: 'This description, as OpenAPI 3.1 in YAML',
      answer: {
        description: 'The description',
        content: { 'application/yaml': { schema: { type: 'string' } } },
      },

      async handle({ reply }) {
        // Quoted so that parsers of YAML 1.1, such as PyYAML, read the same as those of 1.2.
        inYaml ??= yaml().stringify(description(), { aliasDuplicateObjects: false, version: '1.1' });
        return reply.type('application/yaml; charset=utf-8').send(inYaml);
      },
    },

    /** GET /docs */
    readReference: {
      id: 'readReference',
      group: 'Service',
      summary: 'This description, as a page to read',
      answer: { description: 'The page', content: { 'text/html': { schema: { type: 'string' } } } },

      async handle({ reply, services }) {
        const guide = services.ui === undefined ? undefined : '/docs/guide/';
        const page = pages.get(guide) ?? referencePage(description(), { guide });
        pages.set(guide, page);
        reply.headers({ 'content-security-policy': PAGE_POLICY, 'cache-control': 'no-cache' });
        return reply.type('text/html; charset=utf-8').send(page);
      },
    },
  };
}
