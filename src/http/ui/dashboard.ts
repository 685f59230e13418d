/** The dashboard and the guide: their routes, their sessions, and their background builds. */
import type { Logger } from '../../observe/log.ts';
import { ROOT } from '../../std/own-files.ts';
import type { Store } from '../../store/store.ts';
import { Sessions } from '../../teams/sessions.ts';
import type { LastUsed } from '../../teams/usage.ts';
import type { Route } from '../route.ts';
import { BackgroundBuild, DASHBOARD, GUIDE } from './background-build.ts';
import { dashboardRoutes, guideRoute } from './pages.ts';
import { SessionRoutes } from './session.ts';

export interface Dashboard {
  /** Adds to the table: the API under `/ui/api`, with sessions instead of keys, and the pages. */
  routesBeside(routes: readonly Route[]): Route[];
  sessions: SessionRoutes;
  /** Builds the dashboard if it is missing or outdated. */
  build: BackgroundBuild;
  stop(): Promise<void>;
}

/**
 * @param input.publicUrl the URL at which clients reach this service
 * @param input.root the directory of `dashboard/` and `site/`; default: this program's own
 * @param input.builds whether the first request for the guide builds it
 */
export function openDashboard(input: {
  store: Store;
  log: Logger;
  environment: ReadonlyMap<string, string>;
  publicUrl(): string;
  root?: string | undefined;
  builds: boolean;
  lastUsed?: LastUsed;
}): Dashboard {
  const { store, log, environment, publicUrl, root = ROOT, builds } = input;
  const build = new BackgroundBuild({ root, log, environment });
  const buildOfGuide = new BackgroundBuild({ root, log, environment, what: GUIDE });
  const found = new Sessions(store, input.lastUsed);
  const sessions = new SessionRoutes({ store, log, sessions: found, publicUrl });
  return {
    routesBeside: (routes) => [
      ...routes
        .filter(({ path, scope }) => path.startsWith('/v1/') && scope !== null)
        .map((one): Route => ({ ...one, path: `/ui/api${one.path}`, bySession: true })),
      ...sessions.routes(),
      ...dashboardRoutes({ root, what: DASHBOARD, build }),
      guideRoute({ root, what: GUIDE, build: buildOfGuide }, builds),
    ],
    sessions,
    build,
    async stop() {
      found.close();
      await Promise.all([build.stop(), buildOfGuide.stop()]);
    },
  };
}
