/** What docs/guides/notices.md quotes is what a real service says: refusals, and replies of a real SMTP server. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { textOfPage } from '../support/docs/snippets.ts';
import { reply, smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const text = textOfPage('docs/guides/notices.md');
const WEBHOOKS = '/v1/integrations/webhooks';

/** The rows of the table below a heading: the texts of their cells. */
function rowsBelow(heading: string): string[][] {
  const [, below = ''] = text.split(`${heading}\n`);
  const [, table = ''] = /\n\|[-| ]+\|\n((?:\|.*\|\n)+)/.exec(below) ?? [];
  return table
    .trim()
    .split('\n')
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

/** What the SMTP server replies to the sender, the recipient or the whole mail; it accepts everything else. */
let refusal: { at: 'sender' | 'recipient' | 'mail'; code: number } | undefined;
const refused = (at: 'sender' | 'recipient' | 'mail') =>
  refusal?.at === at ? reply(refusal.code, 'as the test wants') : undefined;
const receiver = await smtpReceiver({
  onMailFrom: (_address, _session, done) => done(refused('sender')),
  onRcptTo: (_address, _session, done) => done(refused('recipient')),
  onMail: () => refused('mail'),
});
const service = await startService({
  workflows: { 'default/shop.yaml': 'source: { type: push }' },
  settings: {
    FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${receiver.port}`,
    FLOWHOOK_MAIL_FROM: 'flowhook@example.org',
  },
});
after(() => Promise.all([service.stop(), receiver.close()]));

test('what the page says is refused is refused with its sentence', async () => {
  const rows = rowsBelow('### What is refused');
  assert.ok(rows.length > 10);
  for (const [request = '', response = ''] of rows) {
    const fields = JSON.parse(request.replaceAll('`', ''));
    const { status, body } = await service.call('POST', WEBHOOKS, {
      webhookUrl: 'https://example.org/hook',
      events: ['workflow_data_change'],
      ...fields,
    });
    assert.deepEqual([status, (body as { error?: string }).error], [400, response.slice(1, -1)], request);
  }
});

test('the mail server replies as the page says', async () => {
  const webhookUrl = 'mailto:ops@example.org';
  const made = await service.call('POST', WEBHOOKS, { webhookUrl, events: ['workflow_failed'] });
  const { id } = made.body as { id: string };
  await service.store.webhooks.verify({ teamId: service.team.id, id });
  const rows = new Map(
    rowsBelow('### What the mail server replies').map(([first = '', ...rest]) => [first, rest]),
  );
  const cases = [
    { row: '250', refusal: undefined, state: 'delivered' },
    {
      row: '4xx, such as 450 (greylisting, a full mailbox)',
      refusal: { at: 'recipient', code: 450 },
      state: 'waiting',
    },
    { row: '5xx to the recipient, such as 550', refusal: { at: 'recipient', code: 550 }, state: 'dead' },
    { row: '5xx to the sender', refusal: { at: 'sender', code: 553 }, state: 'dead' },
    { row: '5xx to the mail (content, size)', refusal: { at: 'mail', code: 554 }, state: 'dead' },
    { row: '530', refusal: { at: 'sender', code: 530 }, state: 'waiting' },
    { row: '503, or 421 and a closed connection', refusal: { at: 'mail', code: 503 }, state: 'waiting' },
  ] as const;
  for (const one of cases) {
    refusal = one.refusal;
    const test = await service.call('POST', `${WEBHOOKS}/${id}/test`);
    const { deliveryId } = test.body as { deliveryId: string };
    const { state, lastAttempt } = await until(`the delivery of ${one.row} was attempted`, async () => {
      const { body, status } = await service.call('GET', `/v1/deliveries/${deliveryId}`);
      const delivery = (body as { delivery?: Attempted }).delivery ?? (body as Attempted);
      return status === 200 && delivery.attempt > 0 && delivery;
    });
    assert.equal(state, one.state, one.row);
    assert.equal(lastAttempt.status, one.refusal?.code ?? 250);
    const [, says = ''] = rows.get(one.row) ?? assert.fail(`no row ${one.row}`);
    if (!says.startsWith('"')) continue;
    const [quoted = ''] = says.slice(1, -1).split('…');
    assert.ok(lastAttempt.message.includes(quoted), `${lastAttempt.message} has no ${quoted}`);
  }
});

interface Attempted {
  state: string;
  attempt: number;
  lastAttempt: { status: number | null; message: string };
}
