/** The OpenAPI document of this version. Run as a script it prints it: `npm run openapi`. */
import { routes } from '../routes.ts';
import { describeRoutes } from './describe-routes.ts';

/** What stands in `openapi.json`. The service answers `/openapi.json` from the same table. */
export const openApiText = `${JSON.stringify(describeRoutes(routes), null, 2)}\n`;

if (import.meta.main) process.stdout.write(openApiText);
