/**
 * The action "Run Workflow and Get Records".
 *
 *     queue ── ended within some seconds ───────────────────────────────▶ records
 *       └── not yet ─▶ webhook to Zapier's callback URL, the Zap sleeps
 *                        └── any call to that URL ─▶ webhook ended, job read ─▶ records
 *
 * The call that wakes the Zap is only a hint: the job and its outcome are read with the API key.
 */
import { ask } from './ask.js';
import { hasEnded, onceField, queue, readJob, waitForJob } from './jobs.js';
import { readRecords } from './records.js';
import { subscribe, unsubscribe } from './subscriptions.js';
import { patienceMs } from './waiting.js';
import { workflowField } from './workflow-lists.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const ENDS = ['workflow_finished', 'workflow_failed', 'workflow_canceled'];
const DEFAULT_RECORDS = 100;
const MOST_RECORDS = 5_000;
const LOOK_AGAIN_S = 60;

const sample = {
  id: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
  workflowId: 'people',
  state: 'finished',
  startedAt: '2026-11-21T02:00:00.120Z',
  finishedAt: '2026-11-21T02:00:03.120Z',
  version: 17,
  total: 120,
  added: 1,
  changed: 1,
  removed: 0,
  complete: true,
  records: [{ id: '17', name: 'Ada Lovelace', email: 'ada@example.com' }],
};

export const runWorkflow = {
  key: 'run_workflow',
  noun: 'Run',
  display: {
    label: 'Run Workflow and Get Records',
    description:
      'Queues a job, waits until it has ended, however long it takes, and returns its records as line items.',
  },
  operation: {
    inputFields: [
      workflowField({ required: true }),
      {
        key: 'which',
        label: 'Which Records',
        type: 'string',
        required: false,
        choices: { all: 'All records after the run', changed: 'Records that this run added or changed' },
        default: 'all',
      },
      {
        key: 'limit',
        label: 'Records at Most',
        type: 'integer',
        required: false,
        default: String(DEFAULT_RECORDS),
        helpText: `Up to ${MOST_RECORDS} records and about 4 MB. "Complete" says whether the result has all records.`,
      },
      {
        key: 'whenBusy',
        label: 'When a Job Is There Already',
        type: 'string',
        required: false,
        choices: {
          join: 'Wait for that job, and return its records',
          stop: 'Stop this Zap run, without an error',
        },
        default: 'join',
      },
      onceField,
    ],
    perform,
    performResume,
    sample,
    // The other fields depend on the records of the workflow.
    outputFields: [
      { key: 'id', label: 'Job ID' },
      { key: 'version', label: 'Version', type: 'integer' },
      { key: 'total', label: 'Total Records', type: 'integer' },
      { key: 'complete', label: 'Complete', type: 'boolean' },
      { key: 'records[]id', label: 'Records ID' },
    ],
  },
};

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 */
async function perform(z, bundle) {
  const workflowId = String(bundle.inputData.workflowId);
  const { jobId, queued, sentence } = await queue(z, bundle, workflowId);
  if (!queued && bundle.inputData.whenBusy === 'stop') {
    throw new z.errors.HaltedError(`${sentence} (${workflowId}). The unfinished job is ${jobId}`);
  }
  const job = await waitForJob(z, bundle, jobId, patienceMs());
  if (hasEnded(job)) return outcome(z, bundle, job);
  // The editor cannot be woken. It gets the published records, so that the user can map the next steps.
  if (bundle.meta.isLoadingSample) return shown(z, bundle, job);
  return sleepUntilEnd(z, bundle, job);
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle with the result of `sleepUntilEnd` as its `outputData`
 * @throws ThrottledError if another job of the workflow woke the Zap
 */
async function performResume(z, bundle) {
  const { jobId, webhookId } = /** @type {{ jobId: string, webhookId: string }} */ (bundle.outputData);
  await unsubscribe(z, bundle, { id: webhookId });
  const job = await waitForJob(z, bundle, jobId, patienceMs());
  if (hasEnded(job)) return outcome(z, bundle, job);
  throw new z.errors.ThrottledError(`The job ${jobId} has not ended yet. Zapier checks again`, LOOK_AGAIN_S);
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {Record<string, any>} job
 * @returns {Promise<{ jobId: string, webhookId: string, workflowId: string }>}
 */
async function sleepUntilEnd(z, bundle, { id: jobId, workflowId }) {
  const webhookId = await subscribe(z, bundle, { workflowId, url: z.generateCallbackUrl(), events: ENDS });
  try {
    // The job may have ended before the webhook existed. Then a test of the webhook wakes the Zap.
    if (hasEnded(await readJob(z, bundle, jobId))) {
      await ask(z, bundle, { method: 'POST', path: `/v1/integrations/webhooks/${webhookId}/test` });
    }
  } catch (error) {
    await unsubscribe(z, bundle, { id: webhookId });
    throw error;
  }
  return { jobId, webhookId, workflowId };
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {Record<string, any>} job ended
 * @throws `z.errors.Error` for a failed job, HaltedError for a canceled one
 */
async function outcome(z, bundle, job) {
  if (job.state === 'failed') {
    throw new z.errors.Error(`The job ${job.id} has failed (${job.reason}): ${job.error}`, 'JobFailed');
  }
  if (job.state === 'canceled') {
    throw new z.errors.HaltedError(`The job ${job.id} was canceled: ${job.error}`);
  }
  return shown(z, bundle, job);
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {Record<string, any>} job
 */
async function shown(z, bundle, job) {
  const { total = null, added = 0, changed = 0, removed = 0 } = job.records ?? {};
  const version = job.version ?? null;
  const onlyChanged = bundle.inputData.which === 'changed';
  const read =
    onlyChanged && added + changed === 0
      ? { records: [], complete: true }
      : await readRecords(z, bundle, {
          workflowId: job.workflowId,
          version,
          since: onlyChanged && version !== null ? version - 1 : null,
          most: mostRecords(bundle),
        });
  const { id, workflowId, state, startedAt = null, finishedAt = null } = job;
  return { id, workflowId, state, startedAt, finishedAt, version, total, added, changed, removed, ...read };
}

/** @param {Bundle} bundle */
function mostRecords(bundle) {
  const limit = Number.parseInt(String(bundle.inputData.limit ?? DEFAULT_RECORDS), 10);
  return Number.isFinite(limit) ? Math.min(Math.max(1, limit), MOST_RECORDS) : DEFAULT_RECORDS;
}
