/** The paths of the dashboard and the guide: the API again under `/ui/api`, for sessions, and pages at any depth. */
import type { KnownPath, Match } from '../match.ts';
import { type Route, route } from '../route.ts';
import { readGuide } from './guide.ts';
import { prefersHtml, readPage, toDashboard } from './pages.ts';
import { beginSession, endSession, readSession } from './session.ts';

const GUIDE = '/docs/guide';

const page = route('GET', '/ui/*', null, readPage);
const guide = route('GET', '/docs/guide/*', null, readGuide);
const home = route('GET', '/', null, toDashboard);

/** The routes of the API, answered to a session instead of a key. */
export function routesBySession(routes: readonly Route[]): Route[] {
  return routes
    .filter(({ path, scope }) => path.startsWith('/v1/') && scope !== null)
    .map((one) => ({ ...one, path: `/ui/api${one.path}`, bySession: true }));
}

/** Routes for the table, in addition to those by session. */
export const SESSION_ROUTES: readonly Route[] = [
  route('GET', '/ui/api/session', null, readSession),
  route('POST', '/ui/api/session', null, beginSession),
  route('DELETE', '/ui/api/session', null, endSession),
];

/** Routes that `matchPage` finds: their paths cannot be written in the table. */
export const PAGE_ROUTES: readonly Route[] = [page, guide, home];

/**
 * Matches the paths that the table cannot hold: everything below `/ui/` but its API, the guide, and `/` for browsers.
 *
 * @param path not decoded
 */
export function matchPage(path: string, accept: string | undefined): Match | undefined {
  if (path === '/') return prefersHtml(accept) ? { known: known(home), params: {} } : undefined;
  if (path === GUIDE) return { known: known(guide), params: {} };
  if (path.startsWith(`${GUIDE}/`))
    return { known: known(guide), params: { path: path.slice(GUIDE.length + 1) } };
  if (path !== '/ui' && !path.startsWith('/ui/')) return undefined;
  const below = path.slice('/ui/'.length);
  return below === 'api' || below.startsWith('api/')
    ? undefined
    : { known: known(page), params: { path: below } };
}

function known(route: Route): KnownPath {
  const methods = ['GET', 'HEAD'];
  return {
    path: route.path,
    routes: new Map(methods.map((method) => [method, route])),
    allow: [...methods, 'OPTIONS'].join(', '),
  };
}
