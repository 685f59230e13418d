/** Sends mails through the SMTP server of the settings. */
import { performance } from 'node:perf_hooks';
import { type MailAddress, type MailSender, readMailUrl } from '../../model/messages/mail-address.ts';
import type { Resolver } from '../../net/resolver.ts';
import type { SmtpServer } from '../../net/smtp-url.ts';
import type { Clock } from '../../std/clock.ts';
import { onAbort } from '../../std/stop-order.ts';
import { hideEchoes } from '../destination.ts';
import type { Sent } from '../send.ts';
import { readLetter, writeMail } from './letter.ts';
import { failureOfMail, LateMailError, NotMailedError, type SmtpTrace } from './mail-failure.ts';
import { newTrace, SmtpClient } from './smtp-client.ts';

/** The settings of mail. */
export interface MailSettings {
  server: SmtpServer;
  from: MailSender;
  /** Domains that may receive mail, each with its subdomains; undefined: all. */
  domains: readonly string[] | undefined;
}

/** One attempt to send a mail. */
export interface OutgoingMail {
  /** The JSON of a letter. */
  body: string;
  /** The part of the `Message-ID` before the @, which is the same for all attempts. */
  messageId: string;
  timeoutMs: number;
  queuedMs: number;
  signal?: AbortSignal;
}

const NO_LETTER =
  'The message of this delivery is no letter. Its webhook must have the format `mail`: subscribe the address again';

/** An erasure replaces a letter about the person by a single word, as JSON. */
const GONE = 'The message was erased with the records that it was about, so there is nothing to send';

/** Characters of a reply that are stored. */
const MAX_RESPONSE = 2_048;

export class Mailer {
  readonly settings: MailSettings;
  readonly #client: SmtpClient;
  readonly #publicUrl: () => string;
  readonly #now: Clock;
  readonly #hide: (text: string) => string;

  /** @param input.ca a certificate to trust besides the usual ones (PEM), for tests */
  constructor(input: {
    settings: MailSettings;
    resolver: Resolver;
    publicUrl: () => string;
    now: Clock;
    ca?: string;
  }) {
    const { settings, resolver, ca } = input;
    this.settings = settings;
    this.#client = new SmtpClient(settings.server, resolver, ca);
    this.#publicUrl = input.publicUrl;
    this.#now = input.now;
    const { login } = settings.server;
    this.#hide = hideEchoes(login === null ? [] : [login.password]);
  }

  /** Why mail to this address is refused, as a sentence; undefined if it is allowed. */
  refusal({ domain }: MailAddress): string | undefined {
    const { domains } = this.settings;
    if (domains === undefined || domains.some((one) => domain === one || domain.endsWith(`.${one}`))) {
      return undefined;
    }
    return (
      `Mail to ${domain} is not allowed: FLOWHOOK_MAIL_DOMAINS allows ${domains.join(', ')}. Use another address, or add ` +
      'the domain to this setting'
    );
  }

  /** Connects to the server and signs in. Returns a sentence that describes the failure; undefined if it works. */
  async check(timeoutMs: number): Promise<string | undefined> {
    const trace = newTrace();
    try {
      await this.#limited(timeoutMs, undefined, (signal) => this.#client.check(signal, trace));
      return undefined;
    } catch (error) {
      return this.#hide(failureOfMail(error, trace).error);
    }
  }

  /**
   * Sends one mail. Errors become the outcome and the error of the attempt, like those of requests.
   *
   * @param outgoing.url the `mailto:` URL of the webhook
   * @param outgoing.unsubscribePath the page that ends the mails; undefined if there is none
   */
  async send(outgoing: OutgoingMail & { url: string; unsubscribePath: string | undefined }): Promise<Sent> {
    const startedAt = this.#now();
    const startMs = performance.now();
    const trace = newTrace();
    const { from, server } = this.settings;
    const to = readMailUrl(outgoing.url);
    const id = `${outgoing.messageId}@${new URL(this.#publicUrl()).hostname}`;
    let came: Pick<Sent['attempt'], 'outcome' | 'status' | 'error' | 'response'>;
    try {
      const reply = await this.#deliver({ ...outgoing, to, id, at: startedAt, trace });
      const status = Number.parseInt(reply, 10);
      came = { outcome: 'ok', status, error: null, response: this.#hide(reply).slice(0, MAX_RESPONSE) };
    } catch (error) {
      const failure = failureOfMail(error, trace);
      const { response } = failure;
      came = {
        ...failure,
        error: this.#hide(failure.error),
        response: response === null ? null : this.#hide(response).slice(0, MAX_RESPONSE),
      };
    }
    return {
      attempt: {
        startedAt,
        durationMs: Math.round(performance.now() - startMs),
        ...came,
        details: {
          url: outgoing.url,
          // The subject is left out, because it may quote records, which an erasure would not find here.
          requestHeaders: {
            from: from.address.text,
            to: 'mistake' in to ? '' : to.text,
            'message-id': `<${id}>`,
          },
          responseHeaders: {},
          remoteAddress: trace.remoteAddress,
          timing: timingOf(trace, { startMs, queuedMs: outgoing.queuedMs }),
        },
      },
      retryAfterMs: null,
      server: server.name,
    };
  }

  /** Closes the connections. Call this when no mail is being sent. */
  close(): void {
    this.#client.close();
  }

  async #deliver(
    mail: OutgoingMail & {
      to: MailAddress | { mistake: string };
      id: string;
      unsubscribePath: string | undefined;
      at: number;
      trace: SmtpTrace;
    },
  ): Promise<string> {
    const { to, trace, unsubscribePath } = mail;
    const { from } = this.settings;
    if ('mistake' in to) throw new NotMailedError('blocked', `The address ${to.mistake}`);
    const refusal = this.refusal(to);
    if (refusal !== undefined) throw new NotMailedError('blocked', refusal);
    const letter = readLetter(mail.body);
    if (letter === undefined)
      throw new NotMailedError('protocol', mail.body.startsWith('"') ? GONE : NO_LETTER);
    const message = await writeMail({
      from,
      to,
      letter,
      messageId: mail.id,
      unsubscribeUrl: unsubscribePath && this.#publicUrl() + unsubscribePath,
      at: mail.at,
    });
    return this.#limited(mail.timeoutMs, mail.signal, (signal) =>
      this.#client.send({ from: from.address.text, to: to.text, message, signal, trace }),
    );
  }

  /** Runs a step with a time limit, which names the step that took too long. */
  async #limited<Result>(
    timeoutMs: number,
    outer: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new LateMailError(timeoutMs)), timeoutMs);
    const settled = outer && onAbort(outer, () => limit.abort(outer.reason));
    try {
      return await run(limit.signal);
    } finally {
      clearTimeout(timer);
      settled?.();
    }
  }
}

function timingOf(
  trace: SmtpTrace,
  { startMs, queuedMs }: { startMs: number; queuedMs: number },
): NonNullable<Sent['attempt']['details']>['timing'] {
  const since = (ms: number | null) => (ms === null ? null : Math.max(0, Math.round(ms - startMs)));
  // The wait for a free connection is part of the queue, as it is for the other deliveries of the lane.
  return {
    queuedMs: Math.round(queuedMs + (since(trace.startedMs) ?? 0)),
    dnsMs: since(trace.lookedUpMs),
    connectMs: since(trace.connectedMs),
    tlsMs: since(trace.securedMs),
    firstByteMs: since(trace.repliedMs),
  };
}
