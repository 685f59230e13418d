/** The cookie that holds the secret of a session: for the pages below `/ui` alone, and for no script. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SESSION_MS } from '../../model/session.ts';
import { isSecure, type Place } from './own-origin.ts';

const NAME = 'flowhook_session';
/** 32 bytes in base64url. */
const SECRET = /^[\w-]{43}$/;

/** The secret that the request shows; nothing when there is none that could be one. */
export function sessionSecret({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === NAME && SECRET.test(value)) return value;
  }
  return undefined;
}

/** Lets the browser show this secret for as long as a session lasts that is not used. */
export function keepSecret(place: Place, reply: FastifyReply, secret: string): void {
  setCookie(place, reply, `${secret}; Max-Age=${SESSION_MS / 1_000}`);
}

export function dropSecret(place: Place, reply: FastifyReply): void {
  setCookie(place, reply, '; Max-Age=0');
}

function setCookie(place: Place, reply: FastifyReply, value: string): void {
  const secure = isSecure(place, reply.request) ? '; Secure' : '';
  reply.header('set-cookie', `${NAME}=${value}; Path=/ui; HttpOnly; SameSite=Strict${secure}`);
}
