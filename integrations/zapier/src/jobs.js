/** Queues jobs, and waits until they have ended. */
import { setTimeout as pause } from 'node:timers/promises';
import { ask } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const ENDED = new Set(['finished', 'failed', 'canceled']);
const FIRST_LOOK_MS = 250;
const LAST_LOOK_MS = 2_000;

/** The field that makes a step safe to repeat. Zapier gives an action no id of its run. */
export const onceField = {
  key: 'onceFor',
  label: 'Only Once For',
  type: 'string',
  required: false,
  helpText:
    'Map a value that is unique for each run of this Zap, such as the ID of its event. If Zapier repeats the step with the same value within 24 hours, Flowhook returns the first response and does nothing else.',
};

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @returns {Record<string, string>} the header, or none
 */
export function onceHeader(z, bundle) {
  const { onceFor } = bundle.inputData;
  // The service accepts keys of up to 255 characters, and the mapped value may be anything.
  return onceFor ? { 'idempotency-key': `zapier-${z.hash('sha256', String(onceFor))}` } : {};
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} workflowId
 * @returns {Promise<{ jobId: string, queued: boolean, sentence: string }>} if no job was queued: the unfinished job, and
 *   the message of the service
 * @throws `z.errors.Error` if the workflow accepts no jobs: it is unknown or paused, or it receives pushes
 */
export async function queue(z, bundle, workflowId) {
  const response = await ask(z, bundle, {
    method: 'POST',
    path: `/v1/workflows/${encodeURIComponent(workflowId)}/queue`,
    headers: onceHeader(z, bundle),
    accept: [400],
  });
  const jobId = response.getHeader('x-job-id');
  if (response.status === 200 && jobId) return { jobId, queued: true, sentence: response.data.message };
  const sentence =
    response.data?.error ?? 'Flowhook has queued a job, but a proxy has dropped the header with its id';
  if (!jobId)
    throw new z.errors.Error(sentence, response.getHeader('x-error-code') ?? 'Queue', response.status);
  return { jobId, queued: false, sentence };
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} jobId
 * @returns {Promise<Record<string, any>>}
 */
export async function readJob(z, bundle, jobId) {
  return (await ask(z, bundle, { path: `/v1/jobs/${encodeURIComponent(jobId)}` })).data;
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} jobId
 * @param {number} withinMs
 * @returns {Promise<Record<string, any>>} the job once it has ended, or when the time is over
 */
export async function waitForJob(z, bundle, jobId, withinMs) {
  const deadline = Date.now() + withinMs;
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(wait * 2, LAST_LOOK_MS)) {
    const job = await readJob(z, bundle, jobId);
    const left = deadline - Date.now();
    if (hasEnded(job) || left <= 0) return job;
    await pause(Math.min(wait, left));
  }
}

/** @param {Record<string, any>} job */
export function hasEnded(job) {
  return ENDED.has(job.state);
}
