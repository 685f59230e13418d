/** What is wrong with the installation, and what to do about it, for its operator. */
import { CHECK_GROUPS, FINDING_STATUSES } from '../../model/finding.ts';
import { toIso } from '../../std/clock.ts';
import { isoTime } from '../../std/shape.ts';
import { jsonResponse, objectSchema } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

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

  async handle({ services }: KeyedCall) {
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

const finding = objectSchema({
  group: { enum: CHECK_GROUPS },
  check: { type: 'string', description: 'The name of the check: it stays the same for ever' },
  status: { enum: FINDING_STATUSES },
  what: { type: 'string', description: 'What was found: a sentence' },
  why: {
    type: ['string', 'null'],
    description: 'What comes of it, or why it was not checked; null when all is well',
  },
  fix: { type: ['string', 'null'], description: 'The next step; null when there is none to take' },
  tookMs: { type: 'integer', description: 'How long it took to find out' },
});

/** The same as JSON Schema. */
export const systemChecksSchema = {
  ...objectSchema({
    ok: { type: 'boolean', description: 'Whether no finding is an error' },
    examinedAt: isoTime,
    tookMs: { type: 'integer', description: 'How long all of it took' },
    findings: { type: 'array', items: finding },
  }),
  examples: [
    {
      ok: true,
      examinedAt: '2026-11-21T02:00:00.000Z',
      tookMs: 96,
      findings: [
        {
          group: 'machine',
          check: 'disk-space-data',
          status: 'warning',
          what: '812 MB free for the data directory (/data)',
          why: 'Migrations copy the database first, and the log of a busy hour takes a few hundred MB',
          fix: 'Free up space, or keep less: FLOWHOOK_BACKUP_KEEP, FLOWHOOK_KEEP_EVENTS_DAYS',
          tookMs: 1,
        },
      ],
    },
  ],
};
