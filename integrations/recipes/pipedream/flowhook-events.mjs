/** Pipedream source: emits events of a Flowhook workflow. Subscribes when it is activated, and unsubscribes afterwards. */
import { createHmac, timingSafeEqual } from 'node:crypto';

const TOLERANCE_S = 5 * 60;

export default {
  key: 'flowhook-new-event',
  name: 'New Event (Instant)',
  description: 'Emits an event when a workflow has finished, failed or published new data.',
  version: '0.0.1',
  type: 'source',
  // All attempts and replays of an event have the same id.
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true },
    db: '$.service.db',
    url: { type: 'string', label: 'URL', description: 'For example https://flowhook.example.com' },
    apiKey: {
      type: 'string',
      label: 'API Key',
      secret: true,
      description: 'With the scopes read and webhooks',
    },
    workflowId: {
      type: 'string',
      label: 'Workflow',
      async options({ prevContext }) {
        const cursor = prevContext?.cursor ? `&cursor=${encodeURIComponent(prevContext.cursor)}` : '';
        const { body, headers } = await this.ask('GET', `/v1/workflows?limit=100${cursor}`);
        const next = /[?&]cursor=([^&>]+)/.exec(headers.get('link') ?? '')?.[1];
        return {
          options: body.workflows.map(({ id, name }) => ({ label: name ?? id, value: id })),
          context: { cursor: next },
        };
      },
    },
    events: {
      type: 'string[]',
      label: 'Events',
      default: ['workflow_finished', 'workflow_failed'],
      async options() {
        const { body } = await this.ask('GET', '/v1/events/types');
        return body.types.map(({ type }) => type);
      },
    },
  },
  methods: {
    async ask(method, path, body) {
      const response = await fetch(this.url.replace(/\/+$/, '') + path, {
        method,
        headers: { 'x-api-key': this.apiKey, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body),
        // The key must not be sent to another address.
        redirect: 'error',
      });
      const parsed = await response.json().catch(() => ({}));
      if (!response.ok && !(method === 'DELETE' && response.status === 404)) {
        throw new Error(parsed.error ?? `Flowhook returned ${response.status}`);
      }
      return { body: parsed, headers: response.headers };
    },
    /** Standard Webhooks, `v1`. */
    isSigned(headers, body) {
      const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
      const text = this.db.get('secret');
      if (!id || !signatures || !text) return false;
      if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
      const secret = Buffer.from(text.replace(/^whsec_/, ''), 'base64');
      const expected = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest();
      return signatures.split(' ').some((one) => {
        const given = Buffer.from(one.replace(/^v1,/, ''), 'base64');
        return one.startsWith('v1,') && given.length === expected.length && timingSafeEqual(given, expected);
      });
    },
  },
  hooks: {
    async activate() {
      // Repeating the request creates nothing: activating twice leaves one webhook.
      const { headers } = await this.ask('POST', '/v1/integrations/webhooks/subscribe', {
        workflowId: this.workflowId,
        webhookUrl: this.http.endpoint,
        events: this.events,
      });
      const id = headers.get('x-webhook-id');
      this.db.set('webhookId', id);
      const { body } = await this.ask('GET', `/v1/integrations/webhooks/${id}/secret`);
      this.db.set('secret', body.secret);
    },
    async deactivate() {
      await this.ask('DELETE', `/v1/integrations/webhooks/unsubscribe/${this.db.get('webhookId')}`);
    },
  },
  async run({ headers, body, bodyRaw }) {
    if (!this.isSigned(headers, bodyRaw)) {
      return this.http.respond({ status: 401, body: 'The signature does not match' });
    }
    this.$emit(body, {
      id: body.id,
      summary: `${body.type}: ${body.workflowId ?? ''}`,
      ts: Date.parse(body.timestamp),
    });
    this.http.respond({ status: 200 });
  },
};
