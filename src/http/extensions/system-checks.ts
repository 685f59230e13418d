/** What is wrong with the installation, and what to do about it: for whoever runs it. */
import { toIso } from '../../std/clock.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

export type ShownChecks = Awaited<ReturnType<typeof readSystemChecks.handle>>;

/** GET /v1/system/checks */
export const readSystemChecks = {
  id: 'readSystemChecks',
  group: 'Service',
  summary: 'What is wrong with the installation, what comes of it, and what to do',
  description:
    'For keys with the scope `operator`: what `flowhook doctor` finds, of the node that answers. It may take some ' +
    'seconds, on a large database half a minute. One examination is under way at a time, and its findings hold for 30 s. ' +
    'No request leaves the machine for it.',
  answer: jsonResponse('What was found', 'SystemChecks'),

  async handle({ services, reply }: KeyedCall) {
    reply.header('cache-control', 'no-store');
    const { examinedAt, tookMs, findings } = await services.examine();
    return {
      ok: findings.every(({ status }) => status !== 'error'),
      examinedAt: toIso(examinedAt),
      tookMs,
      findings: findings.map(({ group, check, status, what, why, fix, tookMs }) => ({
        group,
        check,
        status,
        what,
        why,
        fix,
        tookMs,
      })),
    };
  },
} satisfies Operation<KeyedCall>;
