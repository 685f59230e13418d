/** Code samples that read, run and subscribe to one workflow. */
import { curl } from '../../parts/curl.ts';

export const LANGUAGES = [
  { value: 'curl', label: 'curl' },
  { value: 'client', label: 'TypeScript' },
] as const;

export type Language = (typeof LANGUAGES)[number]['value'];

interface Snippet {
  title: string;
  note?: string;
  code: string;
}

interface Subject {
  workflowId: string;
  /** The address of the service. */
  url: string;
  /** Whether the workflow receives records by push instead of running. */
  isPush: boolean;
}

const EVENTS = ['workflow_data_change', 'workflow_failed'];
const RECEIVER = 'https://example.com/hooks/flowhook';
const RECORDS = [{ id: '1', name: 'Ada Lovelace', email: 'ada@example.com' }];

export function snippets(language: Language, subject: Subject): Snippet[] {
  return language === 'curl' ? curlSnippets(subject) : clientSnippets(subject);
}

function curlSnippets({ workflowId, url, isPush }: Subject): Snippet[] {
  const path = `/v1/workflows/${encodeURIComponent(workflowId)}`;
  const subscription = { workflowId, webhookUrl: RECEIVER, events: EVENTS };
  return [
    {
      title: 'Read the records',
      note: 'All records of the latest version as JSON. Add ?format=csv or ?format=ndjson for other formats.',
      code: curl({ url, path: `${path}/data` }),
    },
    isPush
      ? {
          title: 'Push records',
          note: 'Publishes all of the records, or none if one is not valid.',
          code: curl({ url, method: 'POST', path: `${path}/push`, json: RECORDS }),
        }
      : {
          title: 'Run the workflow',
          note: 'The response header x-job-id names the run. Status 400 means that a run is already queued.',
          code: curl({ url, method: 'POST', path: `${path}/queue` }).replace('-sS', '-sSi'),
        },
    {
      title: 'Get notified of changes',
      code: curl({
        url,
        method: 'POST',
        path: '/v1/integrations/webhooks/subscribe',
        json: subscription,
      }),
    },
  ];
}

function clientSnippets({ workflowId, url, isPush }: Subject): Snippet[] {
  const id = JSON.stringify(workflowId);
  const setup = `import { Flowhook } from 'flowhook-client';

const flowhook = new Flowhook({ url: ${JSON.stringify(url)}, key: process.env.FLOWHOOK_KEY });
`;
  return [
    {
      title: 'Read the records',
      note: 'Install the client with npm install flowhook-client. It streams the records instead of holding all of them in memory.',
      code: `${setup}
for await (const record of flowhook.workflows.readData(${id})) {
  console.log(record.id, record.email);
}`,
    },
    isPush
      ? {
          title: 'Push records',
          code: `${setup}
const { version } = await flowhook.workflows.push(${id}, ${JSON.stringify(RECORDS, null, 2)});
console.log(version);`,
        }
      : {
          title: 'Run the workflow and wait for the result',
          code: `${setup}
const { jobId } = await flowhook.workflows.queue(${id});
const job = await flowhook.jobs.wait(jobId, { withinMs: 600_000 });
console.log(job.state, job.error ?? job.records);`,
        },
    {
      title: 'Get notified of changes',
      code: `${setup}
const { message, webhookId } = await flowhook.webhooks.subscribe({
  workflowId: ${id},
  url: ${JSON.stringify(RECEIVER)},
  events: ${JSON.stringify(EVENTS)},
});
console.log(message, webhookId);`,
    },
  ];
}
