/** Pipedream action: runs a workflow of Flowhook, waits for its end, and returns its records. */
import { setTimeout as pause } from 'node:timers/promises';

export default {
  key: 'flowhook-run-workflow',
  name: 'Run Workflow',
  description:
    'Queues a job, waits for its end and returns the records. A job that is there already is waited for.',
  version: '0.0.1',
  type: 'action',
  props: {
    url: { type: 'string', label: 'URL', description: 'For example https://flowhook.example.com' },
    apiKey: { type: 'string', label: 'API Key', secret: true, description: 'With the scopes read and queue' },
    workflowId: { type: 'string', label: 'Workflow' },
    limit: {
      type: 'integer',
      label: 'Records',
      description: 'At most so many',
      default: 1000,
      min: 1,
      max: 10000,
    },
    within: { type: 'integer', label: 'Seconds', description: 'How long to wait for the job', default: 240 },
  },
  methods: {
    async ask(method, path, alsoFine) {
      const answer = await fetch(this.url.replace(/\/+$/, '') + path, {
        method,
        headers: { 'x-api-key': this.apiKey },
        redirect: 'error',
      });
      const body = await answer.json().catch(() => ({}));
      if (!answer.ok && !alsoFine?.(answer))
        throw new Error(body.error ?? `Flowhook answered ${answer.status}`);
      return { body, headers: answer.headers };
    },
  },
  async run({ $ }) {
    const path = `/v1/workflows/${encodeURIComponent(this.workflowId)}`;
    const { headers } = await this.ask('POST', `${path}/queue`, (answer) => answer.headers.has('x-job-id'));
    const until = Date.now() + this.within * 1000;
    let waitMs = 200;
    let job;
    for (;;) {
      job = (await this.ask('GET', `/v1/jobs/${headers.get('x-job-id')}`)).body;
      if (['finished', 'failed', 'canceled'].includes(job.state)) break;
      if (Date.now() >= until)
        throw new Error(`The job ${job.id} has not ended within ${this.within} s; it goes on`);
      // Short jobs are noticed soon, and long ones not asked for all the time.
      await pause(waitMs);
      waitMs = Math.min(waitMs * 2, 5000);
    }
    if (job.state !== 'finished') throw new Error(`${job.state}: ${job.error ?? job.reason}`);
    const { body: records } = await this.ask(
      'GET',
      `${path}/data?version=${job.version}&limit=${this.limit}`,
    );
    $.export('$summary', `${records.length} of ${job.records.total} records of ${this.workflowId}`);
    return { job, records };
  },
};
