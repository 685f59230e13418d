/** IDs and times of the team in the examples: it has a workflow `people`, one job, and webhooks. */
const ID = '01kadz8v3s7v0s8e1c3q5m2n4p';

export const IDS = {
  team: `team_${ID}`,
  key: `key_${ID}`,
  workflow: 'people',
  job: `job_${ID}`,
  webhook: `wh_${ID}`,
  event: `evt_${ID}`,
  delivery: `dlv_${ID}`,
  replay: `rpl_${ID}`,
  retry: `rty_${ID}`,
  signingKey: `sk_${ID}`,
  feed: `feed_${ID}`,
  inspector: 'insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
  auditLine: `aud_${ID}`,
} as const;

export const FEED_TOKEN = `${ID}5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d4e5f6071`;
/** A signed token, as in the links of mails. */
export const MAIL_TOKEN = `team_${ID}.wh_${ID}.mi8j9a0c.${'5f0c3b7d9a1e4c2f'.repeat(4)}`;
export const QUEUED = '2026-11-21T02:00:00.000Z';
export const STARTED = '2026-11-21T02:00:00.120Z';
export const ENDED = '2026-11-21T02:00:03.120Z';
export const RECEIVER = 'https://example.com/hooks/people';
