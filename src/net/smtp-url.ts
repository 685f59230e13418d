/** The SMTP server that sends mail, as FLOWHOOK_SMTP_URL names it. */
import { isIP } from 'node:net';
import { isLoopbackHost } from './host.ts';

/** How TLS is used. `unverified` encrypts, but accepts every certificate. */
const TLS = ['required', 'optional', 'off', 'unverified'] as const;

export interface SmtpServer {
  /** A name or an address, without brackets. */
  host: string;
  port: number;
  /** Whether the connection begins with TLS (`smtps://`). Otherwise TLS begins with STARTTLS. */
  implicitTls: boolean;
  /** `optional` uses STARTTLS if the server offers it. */
  tls: 'required' | 'optional' | 'off';
  verifiesCertificate: boolean;
  /** Null to send without authentication. */
  login: { user: string; password: string } | null;
  /** Scheme, host and port, without user and password. */
  name: string;
}

/** What `smtpUrlMistake` refuses completes the sentence "must be …". */
const EXPECTED =
  'a URL such as smtp://user:password@mail.example.com:587 or smtps://…, with ? and tls=required, optional, off or ' +
  'unverified at most';

/**
 * Parses `smtp://user:password@host:port` or `smtps://…`. Without a port, 587 and 465 are used. STARTTLS is required if
 * there is a password, so that nobody on the way can suppress it and read the password. For a server on this machine,
 * STARTTLS is optional and certificates are not verified, because such servers usually have one for another name.
 *
 * @returns the server, or what the URL must be
 */
export function parseSmtpUrl(text: string): SmtpServer | { expected: string } {
  if (!/^smtps?:\/\/[^/\s]+\/?(?:\?[^\s#]*)?$/i.test(text) || !URL.canParse(text))
    return { expected: EXPECTED };
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const options = [...url.searchParams];
  const asked = TLS.find((one) => one === options[0]?.[1]);
  if (
    host === '' ||
    options.length > 1 ||
    (options[0] !== undefined && (options[0][0] !== 'tls' || asked === undefined))
  ) {
    return { expected: EXPECTED };
  }
  const login = readLogin(url);
  if (login === undefined)
    return {
      expected: 'a URL whose user and password are percent-encoded, such as p%40ss for p@ss, and not empty',
    };
  const implicitTls = url.protocol === 'smtps:';
  if (implicitTls && (asked === 'off' || asked === 'optional')) {
    return { expected: `without tls=${asked}, because smtps:// always uses TLS. Use smtp:// instead` };
  }
  const isHere = isLoopbackHost(host) && (isIP(host) !== 0 || host === 'localhost');
  const preset = login === null || isHere ? 'optional' : 'required';
  const port = url.port === '' ? (implicitTls ? 465 : 587) : Number(url.port);
  if (port === 0) return { expected: EXPECTED };
  return {
    host,
    port,
    implicitTls,
    tls: asked === 'unverified' ? 'required' : (asked ?? (implicitTls ? 'required' : preset)),
    verifiesCertificate: asked === 'required' || (asked !== 'unverified' && !isHere),
    login,
    name: `${url.protocol}//${url.hostname}:${port}`,
  };
}

/** Null without a user; undefined if it is not valid. */
function readLogin({ username, password }: URL): SmtpServer['login'] | undefined {
  if (username === '' && password === '') return null;
  try {
    const login = { user: decodeURIComponent(username), password: decodeURIComponent(password) };
    return login.user === '' || login.password === '' ? undefined : login;
  } catch {
    return undefined;
  }
}
