/** What is wrong with the installation, and what to do about it, for its operator. */
import { shownChecks, systemChecksResource } from '../../resources/system.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

/** GET /v1/system/checks */
export const readSystemChecks: Operation<KeyedCall> = {
  id: 'readSystemChecks',
  group: 'Service',
  summary: 'What is wrong with the installation, what comes of it, and what to do',
  description:
    'For keys with the scope `operator`: what `flowhook doctor` finds, of the node that answers. It may take some ' +
    'seconds, on a large database half a minute. One examination is under way at a time, and its findings hold for 30 s. ' +
    'No request leaves the machine for it.',
  answer: jsonResponse('What was found', systemChecksResource),

  async handle({ services }) {
    return shownChecks(await services.examine());
  },
};
