/** The action "Queue Job": queues a job and continues immediately. */
import { setTimeout as pause } from 'node:timers/promises';
import { onceField, queue } from './jobs.js';
import { outputFields } from './output-fields.js';
import { patienceMs } from './waiting.js';
import { workflowField } from './workflow-lists.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const TRY_AGAIN_MS = 1_000;
const TRY_LATER_S = 60;

const sample = {
  id: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
  workflowId: 'people',
  queued: true,
  message: 'Job queued',
};

export const queueJob = {
  key: 'queue_job',
  noun: 'Job',
  display: {
    label: 'Queue Job',
    description: 'Queues a job for a workflow and continues immediately. Triggers report its outcome.',
  },
  operation: {
    inputFields: [
      workflowField({ required: true }),
      {
        key: 'whenBusy',
        label: 'When a Job Is There Already',
        type: 'string',
        required: false,
        choices: {
          stop: 'Stop this Zap run, without an error',
          skip: 'Continue with that job',
          wait: 'Wait until that job has ended',
        },
        default: 'stop',
        helpText:
          'A workflow has one unfinished job at a time, unless its definition lets a second one wait.',
      },
      onceField,
    ],
    perform,
    sample,
    outputFields: outputFields(sample),
  },
};

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @returns {Promise<{ id: string, workflowId: string, queued: boolean, message: string }>}
 * @throws HaltedError, or ThrottledError with `wait`, if there is already an unfinished job
 */
async function perform(z, bundle) {
  const workflowId = String(bundle.inputData.workflowId);
  const { whenBusy = 'stop' } = bundle.inputData;
  const deadline = Date.now() + (whenBusy === 'wait' ? patienceMs() : 0);
  for (;;) {
    const { jobId, queued, sentence } = await queue(z, bundle, workflowId);
    if (queued || whenBusy === 'skip') return { id: jobId, workflowId, queued, message: sentence };
    if (whenBusy === 'stop') {
      throw new z.errors.HaltedError(`${sentence} (${workflowId}). The unfinished job is ${jobId}`);
    }
    const left = deadline - Date.now();
    if (left <= 0) {
      throw new z.errors.ThrottledError(`${sentence} (${workflowId}). Zapier retries later`, TRY_LATER_S);
    }
    await pause(Math.min(TRY_AGAIN_MS, left));
  }
}
