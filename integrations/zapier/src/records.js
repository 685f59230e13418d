/** The records of a workflow, up to the limit of a step. */
import { ask, nextCursor } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const PAGE_SIZE = 1_000;
/** Zapier stores results above 6 MB elsewhere, and a Zap with this much data is already slow. */
const MOST_CHARACTERS = 4_000_000;

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {{ workflowId: string, version: number | null, since: number | null, most: number }} wanted `since`: only
 *   records that were added or changed after that version
 * @returns {Promise<{ records: Record<string, any>[], complete: boolean }>}
 */
export async function readRecords(z, bundle, { workflowId, version, since, most }) {
  const records = [];
  let characters = 0;
  /** @type {string | null} */
  let cursor = null;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(PAGE_SIZE, most - records.length)) });
    if (version !== null) query.set('version', String(version));
    if (since !== null) query.set('since', String(since));
    if (cursor !== null) query.set('cursor', cursor);
    const response = await ask(z, bundle, {
      path: `/v1/workflows/${encodeURIComponent(workflowId)}/data?${query}`,
    });
    records.push(...response.data);
    characters += response.content.length;
    cursor = nextCursor(response);
  } while (cursor !== null && records.length < most && characters < MOST_CHARACTERS);
  return { records, complete: cursor === null };
}
