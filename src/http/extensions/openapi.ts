/** The published description of everything here. */
import { describeRoutes } from '../describe-routes.ts';
import type { Call, Operation, Route } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

/** GET /openapi.json. The table is handed in by the table itself, hence as a function. */
export function readOpenApi(routes: () => readonly Route[]): Operation<Call> {
  let description: object | undefined;
  return {
    id: 'readOpenApi',
    group: 'Service',
    summary: 'This description, as OpenAPI 3.1',
    answer: jsonResponse('The description', { type: 'object' }),

    async handle() {
      description ??= describeRoutes(routes());
      return description;
    },
  };
}
