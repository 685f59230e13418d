/** Whether the process lives, and whether it can serve. No key needed; not logged. */
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

const ok = jsonResponse('Yes', {
  type: 'object',
  required: ['status'],
  properties: { status: { const: 'ok' } },
});

/** GET /livez: the process answers. */
export const live: Operation<Call> = {
  id: 'live',
  group: 'Service',
  summary: 'Whether the process lives',
  answer: ok,

  async handle() {
    return { status: 'ok' };
  },
};

/** GET /readyz: it has started, is not stopping, and the database answers. */
export const ready: Operation<Call> = {
  id: 'ready',
  group: 'Service',
  summary: 'Whether the service can take requests',
  answer: ok,
  refusals: { not_ready: 'Not now' },

  async handle({ services }) {
    if (!services.isReady()) throw new Problem('not_ready');
    await services.store.check().catch((cause) => {
      throw new Problem('database_unavailable', { cause });
    });
    return { status: 'ok' };
  },
};
