/** Searching everything that a team has. */

import { SEARCHED, searchTeam } from '../../jobs/search.ts';
import { allows } from '../../model/team.ts';
import { choice, list, object, text } from '../../std/shape.ts';
import { choicesParameter, MAX_SEARCHED, numberParameter, textParameter } from '../input/query.ts';
import { invalid } from '../input/values.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

const USUAL_HITS = 10;
const MAX_HITS = 50;

const Q = textParameter('q', 'Text to find, ignoring case, or an exact ID', MAX_SEARCHED);
const TYPES = choicesParameter(
  'types',
  SEARCHED,
  'Types of objects to search (default: all that the key may read)',
);
const LIMIT = numberParameter('limit', `Maximum number of hits of each type (default: ${USUAL_HITS})`, {
  least: 1,
  most: MAX_HITS,
});

/** GET /v1/search */
export const search: Operation<KeyedCall> = {
  id: 'search',
  group: 'Service',
  summary: 'Search everything',
  description:
    'Finds workflows (ID, name), webhooks (ID, name, description, URL, labels), jobs (ID, error), deliveries (ID, last ' +
    'error and response, webhook), events (ID) and current records (whole JSON). Takes about 0.2 s: `incomplete` names the ' +
    'types in which older or further items were not searched. Deliveries need the scope `webhooks`; without it, what may ' +
    'be secret in URLs is neither searched nor shown.',
  parameters: [{ ...Q, required: true }, TYPES, LIMIT],
  answer: jsonResponse(
    'Hits',
    object({
      hits: list(
        object({
          type: choice(SEARCHED),
          id: text(),
          title: text('Name of the object, or of what it belongs to'),
          text: text('Text with the match'),
          path: text('Path of the page in the dashboard'),
        }),
      ),
      incomplete: list(choice(SEARCHED), 'Types that were not searched completely'),
    }),
  ),
  errors: { field_invalid: 'A parameter is missing or has an invalid value' },

  async handle({ services, caller, query }) {
    const q = Q.read(query) ?? invalid('The query parameter `q` is required');
    const mayManage = allows(caller.scopes, 'webhooks');
    const types = (TYPES.read(query) ?? SEARCHED).filter((type) => mayManage || type !== 'deliveries');
    const limit = LIMIT.read(query) ?? USUAL_HITS;
    return searchTeam(services.store, { teamId: caller.teamId, q, types, limit, mayManage });
  },
};
