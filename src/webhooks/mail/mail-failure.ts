/** How the attempt to send a mail failed: its outcome, and a sentence that says what to do. */
import type { Attempt } from '../../model/delivery.ts';
import { ResolveError } from '../../net/resolver.ts';
import { printable } from '../../std/printable.ts';
import { failureOf } from '../exchange.ts';

/** How far an attempt came. The times are of `performance.now()`; they stay null if a connection was reused. */
export interface SmtpTrace {
  /**
   * The last step that began. `wait`: for a free connection; `reply`: everything was transferred, and the server has not
   * replied yet.
   */
  step: 'wait' | 'dns' | 'connect' | 'greeting' | 'login' | 'envelope' | 'message' | 'reply';
  remoteAddress: string | null;
  startedMs: number | null;
  lookedUpMs: number | null;
  connectedMs: number | null;
  securedMs: number | null;
  repliedMs: number | null;
}

/** The mail was not sent, for a reason that the sentence gives. */
export class NotMailedError extends Error {
  override readonly name = 'NotMailedError';
  readonly outcome: 'blocked' | 'connect' | 'protocol';

  constructor(outcome: NotMailedError['outcome'], sentence: string) {
    super(sentence);
    this.outcome = outcome;
  }
}

/** The attempt took longer than its limit. */
export class LateMailError extends Error {
  override readonly name = 'LateMailError';
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`The mail was not sent within ${timeoutMs / 1_000} s`);
    this.timeoutMs = timeoutMs;
  }
}

type Failure = Pick<Attempt, 'status' | 'response'> & {
  outcome: Exclude<Attempt['outcome'], 'ok' | 'http'>;
  error: string;
};

/** The fields of nodemailer's errors. `command` names the command that was refused, such as `RCPT TO`. */
interface SmtpError extends Error {
  code?: string;
  originalCode?: string;
  command?: string;
  response?: string;
  responseCode?: number | false;
}

/** Characters of a reply that a sentence quotes. */
const MAX_QUOTED = 200;

/** @param error what `SmtpClient` has thrown */
export function failureOfMail(error: unknown, trace: SmtpTrace): Failure {
  const none = { status: null, response: null };
  if (error instanceof NotMailedError) return { ...none, outcome: error.outcome, error: error.message };
  if (error instanceof LateMailError) {
    return { ...none, outcome: 'timeout', error: lateness(trace.step, error.timeoutMs) };
  }
  const { code = '', originalCode = '', response, responseCode, message } = error as SmtpError;
  if (typeof responseCode === 'number' && response !== undefined) {
    return replied(error as SmtpError, { reply: response, status: responseCode, step: trace.step });
  }
  if (error instanceof ResolveError) return { ...none, ...ofServer(failureOf(error)) };
  // Nodemailer replaces the codes of the system and of TLS.
  const cause = Object.assign(new Error(message), error, { code: originalCode || code });
  const { outcome, error: sentence } = ofServer(failureOf(cause));
  if (outcome === 'tls') return { ...none, outcome, error: sentence };
  if (code === 'ETLS') return { ...none, outcome: 'tls', error: tlsRefused(message) };
  if (trace.step === 'connect') return { ...none, outcome, error: sentence };
  if (code === 'EPROTOCOL' && /maximum allowed size/.test(message)) {
    return { ...none, outcome: 'protocol', error: 'The SMTP server sent a reply of more than 64 KiB' };
  }
  if (code === 'EMESSAGE' || code === 'EENVELOPE' || code === 'EPROTOCOL' || code === 'EAUTH') {
    const what = quoted(response ?? message);
    return { ...none, outcome: 'protocol', error: `The SMTP server sent a reply that is not valid: ${what}` };
  }
  return { ...none, outcome: 'protocol', error: CLOSED[trace.step] };
}

const AGAIN = 'The mail is sent again, with the same Message-ID';
const CLOSED: Readonly<Record<SmtpTrace['step'], string>> = {
  wait: 'The mail was not sent, because the connections to the SMTP server were closed',
  dns: 'The mail was not sent, because the connections to the SMTP server were closed',
  connect: 'The SMTP server closed the connection while it was being established',
  greeting:
    'The SMTP server closed the connection before the conversation began. Check the port in FLOWHOOK_SMTP_URL, and ' +
    'whether it expects TLS from the start (smtps://)',
  login: 'The SMTP server closed the connection during the authentication',
  envelope: 'The SMTP server closed the connection before the mail was transferred',
  message: `The SMTP server closed the connection while the mail was being transferred. ${AGAIN}`,
  reply: `The SMTP server closed the connection after the mail, without a reply, so it may have accepted it. ${AGAIN}`,
};

function lateness(step: SmtpTrace['step'], timeoutMs: number): string {
  const within = `within ${timeoutMs / 1_000} s`;
  switch (step) {
    case 'wait':
      return `No connection to the SMTP server became free ${within}. Check why it responds so slowly`;
    case 'dns':
    case 'connect':
      return `No connection to the SMTP server was established ${within}. Check the host and port in FLOWHOOK_SMTP_URL, and the firewall`;
    case 'greeting':
      return (
        `The SMTP server accepted the connection, but did not begin the conversation ${within}. Check the port in ` +
        'FLOWHOOK_SMTP_URL, and whether it expects TLS from the start (smtps://)'
      );
    case 'login':
      return `The SMTP server did not reply to the authentication ${within}`;
    case 'envelope':
      return `The SMTP server did not reply to the sender and the recipient ${within}`;
    case 'message':
      return `The mail was not transferred completely ${within}. ${AGAIN}`;
    case 'reply':
      return `The mail was transferred, but the SMTP server did not reply ${within}, so it may have accepted it. ${AGAIN}`;
  }
}

/** The server refused something. */
function replied(
  { command = '', message }: SmtpError,
  { reply, status, step }: { reply: string; status: number; step: SmtpTrace['step'] },
): Failure {
  const response = printable(reply);
  const said = `SMTP ${status}`;
  const words = quoted(reply.replace(/^\d{3}[ -]?/, ''));
  const failure = (outcome: Failure['outcome'], what: string): Failure => ({
    outcome,
    status,
    response,
    error: `${said}: ${what}${words === '""' ? '' : `. The server's words: ${words}`}`,
  });
  if (command.startsWith('AUTH')) {
    return failure('connect', 'the SMTP server refused the user or the password. Correct FLOWHOOK_SMTP_URL');
  }
  if (command === 'STARTTLS') return failure('tls', tlsRefused(message));
  if (step === 'connect' || step === 'greeting' || step === 'login') {
    return failure(
      'connect',
      'the SMTP server refused the connection. Check whether it accepts mail from this machine',
    );
  }
  // It refuses everybody who has not signed in, so this mail can arrive once the setting is right.
  if (status === 530) {
    return failure(
      'connect',
      'the SMTP server requires authentication. Add a user and a password to FLOWHOOK_SMTP_URL',
    );
  }
  if (status < 500) return failure('smtp', 'the SMTP server asked to send the mail later');
  if (command.startsWith('MAIL')) {
    return failure(
      'smtp',
      'the SMTP server refused the sender. Set FLOWHOOK_MAIL_FROM to an address that it may send from',
    );
  }
  if (command.startsWith('RCPT')) {
    return failure('smtp', 'the SMTP server refused the recipient. Check the address of the webhook');
  }
  return failure('smtp', 'the SMTP server refused the mail');
}

function tlsRefused(message: string): string {
  if (/upgrading|STARTTLS/i.test(message)) {
    return (
      'the SMTP server does not begin TLS, which FLOWHOOK_SMTP_URL requires. Use the port with TLS (smtps://), or ' +
      '?tls=off in a network that you trust'
    );
  }
  return 'The TLS handshake with the SMTP server failed. Check the port in FLOWHOOK_SMTP_URL';
}

/** Sentences about endpoints, in words about the SMTP server. */
function ofServer<F extends { error: string }>(failure: F): F {
  const error = failure.error
    .replaceAll("The endpoint's", "The SMTP server's")
    .replaceAll(/\b[Tt]he endpoint\b/g, 'The SMTP server')
    .replace(
      'whether the URL should start with http://',
      'whether FLOWHOOK_SMTP_URL should start with smtp://',
    );
  return { ...failure, error };
}

function quoted(text: string): string {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim();
  return JSON.stringify(line.length > MAX_QUOTED ? `${line.slice(0, MAX_QUOTED)}…` : line);
}
