/** The OpenAPI document as text. `npm run openapi` runs this file to print the document. */
import { routes } from '../routes.ts';
import { describeRoutes } from './describe-routes.ts';

/** The content of `openapi.json`. */
export const openApiText = `${JSON.stringify(describeRoutes(routes), null, 2)}\n`;

if (import.meta.main) process.stdout.write(openApiText);
