/** Code snippets that read, run and subscribe to one workflow, with values quoted for each language. */

export const LANGUAGES = [
  { value: 'curl', label: 'curl' },
  { value: 'client', label: 'flowhook-client' },
  { value: 'python', label: 'Python' },
] as const;

export type Language = (typeof LANGUAGES)[number]['value'];

export interface Snippet {
  title: string;
  /** A sentence or two. */
  note?: string;
  code: string;
}

export interface Subject {
  workflowId: string;
  /** Of the service, without a slash at its end. */
  url: string;
  /** Its records are pushed: it takes some, in place of a run. */
  isPush: boolean;
}

const EVENTS = ['workflow_data_change', 'workflow_failed'];
const RECEIVER = 'https://example.com/hooks/flowhook';
const RECORDS = [{ id: '1', name: 'Ada Lovelace', email: 'ada@example.com' }];

/** Reading its records, running it or pushing to it, and being told of it. */
export function snippets(language: Language, subject: Subject): Snippet[] {
  return OF[language](subject);
}

const OF: Record<Language, (subject: Subject) => Snippet[]> = {
  curl: (subject) => {
    const [data, act] = addressesOf(subject);
    const key = `-H "x-api-key: $FLOWHOOK_KEY"`;
    const json = `-H 'content-type: application/json'`;
    return [
      {
        title: 'Read the records',
        note: 'All of the last version. Other forms: ?format=csv and ?format=ndjson.',
        code: `curl -sS --compressed ${key} \\\n  ${shell(data)}`,
      },
      subject.isPush
        ? {
            title: 'Push records',
            note: 'All or none; they can be read once it has answered.',
            code: `curl -sS -X POST ${key} ${json} \\\n  -d ${shell(JSON.stringify(RECORDS))} \\\n  ${shell(act)}`,
          }
        : {
            title: 'Run it',
            note: 'The header x-job-id of the answer names the run. 400 when one is queued already.',
            code: `curl -sS -i -X POST ${key} \\\n  ${shell(act)}`,
          },
      {
        title: 'Get notified of changes',
        code: `curl -sS -X POST ${key} ${json} \\\n  -d ${shell(JSON.stringify(subscription(subject)))} \\\n  ${shell(subscribeAddress(subject))}`,
      },
    ];
  },

  client: (subject) => {
    const id = literal(subject.workflowId);
    const head = `import { Flowhook } from 'flowhook-client';

const flowhook = new Flowhook({ url: ${literal(subject.url)}, key: process.env.FLOWHOOK_KEY });
`;
    return [
      {
        title: 'Read the records',
        note: 'npm install flowhook-client. One record after the other: a million never lie in memory.',
        code: `${head}
for await (const record of flowhook.workflows.readData(${id})) {
  console.log(record.id, record.email);
}`,
      },
      subject.isPush
        ? {
            title: 'Push records',
            code: `${head}
const { version } = await flowhook.workflows.push(${id}, ${indented(RECORDS, 0)});
console.log(version);`,
          }
        : {
            title: 'Run it and wait for its end',
            code: `${head}
const { jobId } = await flowhook.workflows.queue(${id});
const job = await flowhook.jobs.wait(jobId, { withinMs: 600_000 });
console.log(job.state, job.error ?? job.records);`,
          },
      {
        title: 'Get notified of changes',
        code: `${head}
const { message, webhookId } = await flowhook.webhooks.subscribe({
  workflowId: ${id},
  url: ${literal(RECEIVER)},
  events: ${JSON.stringify(EVENTS)},
});
console.log(message, webhookId);`,
      },
    ];
  },

  python: (subject) => {
    const [data, act] = addressesOf(subject);
    const head = `import json, os, urllib.request

KEY = {"x-api-key": os.environ["FLOWHOOK_KEY"]}
`;
    const post = (address: string, body: unknown) => `${head}
request = urllib.request.Request(
    ${literal(address)},
    method="POST",
    headers={**KEY, "content-type": "application/json"},
    data=json.dumps(${JSON.stringify(body)}).encode(),
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["message"])`;
    return [
      {
        title: 'Read the records',
        note: 'With the standard library alone.',
        code: `${head}
request = urllib.request.Request(${literal(data)}, headers=KEY)
with urllib.request.urlopen(request) as response:
    records = json.load(response)
print(len(records))`,
      },
      subject.isPush
        ? { title: 'Push records', code: post(act, RECORDS) }
        : {
            title: 'Run it',
            code: `${head}
request = urllib.request.Request(${literal(act)}, method="POST", headers=KEY)
with urllib.request.urlopen(request) as response:
    print(response.headers["x-job-id"])`,
          },
      { title: 'Get notified of changes', code: post(subscribeAddress(subject), subscription(subject)) },
    ];
  },
};

/** Of its data, and of what makes it do something. */
function addressesOf({ url, workflowId, isPush }: Subject): [data: string, act: string] {
  const base = `${url}/v1/workflows/${encodeURIComponent(workflowId)}`;
  return [`${base}/data`, `${base}/${isPush ? 'push' : 'queue'}`];
}

function subscribeAddress({ url }: Subject): string {
  return `${url}/v1/integrations/webhooks/subscribe`;
}

function subscription({ workflowId }: Subject): object {
  return { workflowId, webhookUrl: RECEIVER, events: EVENTS };
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Of JavaScript and of Python alike. */
function literal(text: string): string {
  return JSON.stringify(text);
}

function indented(value: unknown, by: number): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(by)}`);
}
