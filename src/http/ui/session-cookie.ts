/** The cookie with the secret of a session: sent only below `/ui`, and not readable by scripts. */
import { SESSION_MS } from '../../model/team.ts';
import type { Reply, Request } from '../server/exchange.ts';
import { isSecure, type Place } from './own-origin.ts';

const NAME = 'flowhook_session';
/** 32 bytes in base64url. */
const SECRET = /^[\w-]{43}$/;

/** The secret in the request; undefined when there is none of the right form. */
export function sessionSecret({ headers }: Pick<Request, 'headers'>): string | undefined {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === NAME && SECRET.test(value)) return value;
  }
  return undefined;
}

/** Makes the browser send this secret for as long as an unused session lasts. */
export function keepSecret(place: Place, reply: Reply, secret: string): void {
  setCookie(place, reply, `${secret}; Max-Age=${SESSION_MS / 1_000}`);
}

export function dropSecret(place: Place, reply: Reply): void {
  setCookie(place, reply, '; Max-Age=0');
}

function setCookie(place: Place, reply: Reply, value: string): void {
  const secure = isSecure(place, reply.request) ? '; Secure' : '';
  reply.header('set-cookie', `${NAME}=${value}; Path=/ui; HttpOnly; SameSite=Strict${secure}`);
}
