/**
 * Pictures of the messages that people get, and of the page of a feed, in both themes. A real service makes them: mails
 * arrive at an SMTP server. A browser draws them (`chat-pages.ts` says how it draws chat messages).
 */
import type { Browser, Page } from 'playwright-core';
import { type SmtpReceiver, smtpReceiver } from '../../test/support/mail/smtp-receiver.ts';
import { startService, type TestService } from '../../test/support/service.ts';
import { discordPage, slackPage, type Theme, teamsPage } from './chat-pages.ts';

const WIDTH = 720;
/** Of pages that are longer, the beginning is shown. */
const MAX_HEIGHT = 760;
const HOUR_MS = 3_600_000;
const WEBHOOKS = '/v1/integrations/webhooks';
const LAMP = { id: 'lamp', title: 'Desk lamp', url: 'https://shop.example/lamp', stock: 12 };
const CHAIR = { id: 'chair', title: 'Oak chair', url: 'https://shop.example/chair', price: 80 };
const SOFA = { id: 'sofa', title: 'Velvet sofa', url: 'https://shop.example/sofa', stock: 1 };
const RUG = { id: 'rug', title: 'Wool rug', price: 45, stock: 7 };
/** The articles of the shop, version by version. */
const VERSIONS = [
  [{ ...LAMP, price: 52 }, { ...CHAIR, stock: 0 }, RUG],
  [
    { ...LAMP, price: 47 },
    { ...CHAIR, stock: 3 },
    { ...SOFA, price: 700 },
  ],
  [
    { ...LAMP, price: 44 },
    { ...CHAIR, stock: 2 },
    { ...SOFA, price: 650 },
  ],
  [
    { ...LAMP, price: 41 },
    { ...CHAIR, stock: 2 },
    { ...SOFA, price: 700 },
  ],
];
const NEWSLETTER = `source:
  type: command
  command: [sh, -c, 'echo "Reading the list of subscribers" >&2; echo "The list returned 503: maintenance until 06:00" >&2; exit 1']
retries: { max: 0 }
`;

/** Makes the pictures. @param keep gets each with its name */
export async function takeMessages(
  browser: Browser,
  keep: (name: string, picture: Buffer) => Promise<void>,
): Promise<void> {
  const inbox = await smtpReceiver();
  let nowMs = Date.parse('2026-11-24T07:30:00Z');
  const service = await startService({
    clock: () => nowMs,
    settings: {
      FLOWHOOK_PUBLIC_URL: 'https://flowhook.example',
      FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${inbox.port}`,
      FLOWHOOK_MAIL_FROM: 'Flowhook <flowhook@shop.example>',
    },
    workflows: { 'default/shop.yaml': 'source: { type: push }', 'default/newsletter.yaml': NEWSLETTER },
  });
  try {
    const feed = await service.call('POST', '/v1/workflows/shop/feeds', { title: 'Prices of the shop' });
    const address = (feed.body as { urls: { html: string } }).urls.html;
    const changes = { workflowId: 'shop', events: ['workflow_data_change'] };
    await push(service, 0);
    const change = await subscribe(service, { ...changes, name: 'Prices' });
    await push(service, 1);
    const ofChange = await noticeIn(inbox, 1);
    await service.call('POST', `${WEBHOOKS}/${change}/pause`, { reason: 'Its picture was taken' });
    const digest = await subscribe(service, {
      ...changes,
      name: 'Prices of the day',
      digest: { every: '1d' },
    });
    for (const version of [2, 3]) {
      nowMs += 3 * HOUR_MS;
      await push(service, version);
    }
    await service.ruleEngine.tick();
    await service.call('PATCH', `${WEBHOOKS}/${digest}`, { digest: null });
    const ofDigest = await noticeIn(inbox, 2);
    await subscribe(service, { events: ['workflow_failed'], name: 'When something breaks' });
    await service.call('POST', '/v1/workflows/newsletter/queue');
    const ofFailure = await noticeIn(inbox, 3);

    const chat = (format: string) => tried(service, format);
    const [slack, discord, teams] = [await chat('slack'), await chat('discord'), await chat('teams')];
    const shown: Record<string, (page: Page, theme: Theme) => Promise<unknown>> = {
      'mail-change': (page) => page.setContent(htmlOf(ofChange)),
      'mail-digest': (page) => page.setContent(htmlOf(ofDigest)),
      'mail-failure': (page) => page.setContent(htmlOf(ofFailure)),
      slack: (page, theme) => page.setContent(slackPage(slack, theme)),
      discord: (page, theme) => page.setContent(discordPage(discord, theme)),
      teams: (page, theme) => page.setContent(teamsPage(teams, theme)),
      feed: (page) => page.goto(service.url + new URL(address).pathname),
    };
    for (const theme of ['light', 'dark'] as const) {
      const context = await browser.newContext({
        colorScheme: theme,
        viewport: { width: WIDTH, height: 200 },
      });
      const page = await context.newPage();
      for (const [name, show] of Object.entries(shown)) {
        await show(page, theme);
        await keep(`${name}-${theme}`, await pictureOf(page));
      }
      await context.close();
    }
  } finally {
    await service.stop();
    await inbox.close();
  }
}

async function pictureOf(page: Page): Promise<Buffer> {
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  const clip = { x: 0, y: 0, width: WIDTH, height: Math.min(height, MAX_HEIGHT) };
  return page.screenshot({ fullPage: true, clip });
}

/** Subscribes an address and confirms it. Returns the id of the webhook. */
async function subscribe(service: TestService, fields: object): Promise<string> {
  const { body } = await service.call('POST', WEBHOOKS, {
    webhookUrl: 'mailto:buyers@shop.example',
    timeZone: 'Europe/Zurich',
    ...fields,
  });
  const { id } = body as { id: string };
  await service.store.webhooks.verify({ teamId: service.team.id, id });
  return id;
}

/** The notice with this number, counted from 1. Mails that ask for a confirmation are no notices. */
async function noticeIn(inbox: SmtpReceiver, number: number): Promise<SmtpReceiver['mails'][number]> {
  for (let mails = number; ; mails += 1) {
    await inbox.mail(mails);
    const notice = inbox.mails.filter(({ headers }) => 'list-unsubscribe' in headers)[number - 1];
    if (notice !== undefined) return notice;
  }
}

async function push(service: TestService, version: number): Promise<void> {
  const { status, body } = await service.call('POST', '/v1/workflows/shop/push', VERSIONS[version]);
  if (status !== 200) throw new Error(JSON.stringify(body));
}

function htmlOf({ mail: { html } }: SmtpReceiver['mails'][number]): string {
  if (html === undefined) throw new Error('A mail has no HTML');
  return html;
}

/** A chat message about the second version. Events are listed oldest first. */
async function tried(service: TestService, format: string): Promise<unknown> {
  const asked = { format, timeZone: 'Europe/Zurich', workflowId: 'shop', events: ['workflow_data_change'] };
  const { body } = await service.call('POST', '/v1/webhooks/try', asked);
  const all = (body as { tried: { body: string | null }[] }).tried;
  return JSON.parse(all[1]?.body ?? 'null');
}
