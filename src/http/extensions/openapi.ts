/** The published description of everything here: for programs as JSON and YAML, for people as a page. */
import { yaml } from '../../std/yaml.ts';
import { jsonResponse } from '../openapi/content.ts';
import { describeRoutes } from '../openapi/describe-routes.ts';
import { referencePage } from '../openapi/reference-page.ts';
import type { Call, Operation, Route } from '../route.ts';

/** The page runs nothing and asks nobody for anything, whatever stands in a description. */
const NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/** The three operations. The table is handed in by the table itself, hence as a function. */
export function describeTable(routes: () => readonly Route[]): {
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
        inYaml ??= yaml().stringify(description(), { aliasDuplicateObjects: false });
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
        reply.headers({ 'content-security-policy': NOTHING_ELSE, 'cache-control': 'no-cache' });
        return reply.type('text/html; charset=utf-8').send(page);
      },
    },
  };
}
