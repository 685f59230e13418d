/** Pipedream action: runs a Flowhook workflow, waits until it ends, and returns its records. */
import { setTimeout as pause } from 'node:timers/promises';

export default {
  key: 'flowhook-run-workflow',
  name: 'Run Workflow',
  description:
    'Queues a job, waits until it ends and returns the records. If there is already an unfinished job, waits for that one.',
  version: '0.0.1',
  type: 'action',
  props: {
    url: { type: 'string', label: 'URL', description: 'For example https://flowhook.example.com' },
    apiKey: { type: 'string', label: 'API Key', secret: true, description: 'With the scopes read and queue' },
    workflowId: { type: 'string', label: 'Workflow' },
    limit: {
      type: 'integer',
      label: 'Records',
      description: 'Maximum number of records',
      default: 1000,
      min: 1,
      max: 10000,
    },
    within: { type: 'integer', label: 'Seconds', description: 'How long to wait for the job', default: 240 },
  },
  methods: {
    async ask(method, path, alsoFine) {
      const response = await fetch(this.url.replace(/\/+$/, '') + path, {
        method,
        headers: { 'x-api-key': this.apiKey },
        redirect: 'error',
      });
      const body = await response.json().catch(() => ({}));
      if (!response.ok && !alsoFine?.(response))
        throw new Error(body.error ?? `Flowhook returned ${response.status}`);
      return { body, headers: response.headers };
    },
  },
  async run({ $ }) {
    const path = `/v1/workflows/${encodeURIComponent(this.workflowId)}`;
    const { headers } = await this.ask('POST', `${path}/queue`, (response) =>
      response.headers.has('x-job-id'),
    );
    const until = Date.now() + this.within * 1000;
    let waitMs = 200;
    let job;
    for (;;) {
      job = (await this.ask('GET', `/v1/jobs/${headers.get('x-job-id')}`)).body;
      if (['finished', 'failed', 'canceled'].includes(job.state)) break;
      if (Date.now() >= until)
        throw new Error(`The job ${job.id} has not ended within ${this.within} s and continues`);
      // Checks short jobs often, and long jobs less often.
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
