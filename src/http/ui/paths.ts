/** The paths of the dashboard and the guide: the API again under `/ui/api`, for sessions, and pages at any depth. */
import { type Route, route } from '../route.ts';
import { readGuide } from './guide.ts';
import { readPage, toDashboard } from './pages.ts';
import { beginSession, endSession, readSession } from './session.ts';

/** The table of a node with a dashboard: the API, the same answered to a session instead of a key, and the pages. */
export function withDashboard(routes: readonly Route[]): Route[] {
  const bySession = routes.filter(({ path, scope }) => path.startsWith('/v1/') && scope !== null);
  return [
    ...routes,
    ...bySession.map((one): Route => ({ ...one, path: `/ui/api${one.path}`, bySession: true })),
    route('GET', '/ui/api/session', null, readSession),
    route('POST', '/ui/api/session', null, beginSession),
    route('DELETE', '/ui/api/session', null, endSession),
    route('GET', '/ui/*', null, readPage),
    route('GET', '/docs/guide/*', null, readGuide),
    route('GET', '/', null, toDashboard),
  ];
}
