/** The routes: the path of every page, and the module that is loaded for it. */
import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { parseSearch, stringifySearch } from './parts/filters.ts';
import { NotFoundPage, PageError, page } from './shell/lazy-page.tsx';
import { Shell } from './shell/shell.tsx';

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFoundPage,
  validateSearch: (search): Record<string, string | undefined> => search as Record<string, string>,
});

/** A page, whose code is loaded on the first visit. */
function at<Path extends string, Module extends Record<Name, () => React.ReactNode>, Name extends string>(
  path: Path,
  load: () => Promise<Module>,
  name: Name,
) {
  return createRoute({ getParentRoute: () => root, path, component: page(load, name) });
}

const workflow = at('/workflows/$workflowId', () => import('./pages/workflows/workflow.tsx'), 'WorkflowPage');

/** A tab of the workflow page. */
function tab<Path extends string, Module extends Record<Name, () => React.ReactNode>, Name extends string>(
  path: Path,
  load: () => Promise<Module>,
  name: Name,
) {
  return createRoute({ getParentRoute: () => workflow, path, component: page(load, name) });
}

const firstTab = createRoute({
  getParentRoute: () => workflow,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/workflows/$workflowId/data', params, replace: true });
  },
});

export const router = createRouter({
  basepath: '/ui',
  routeTree: root.addChildren([
    at('/', () => import('./pages/overview/overview.tsx'), 'OverviewPage'),
    at('/workflows', () => import('./pages/workflows/workflows.tsx'), 'WorkflowListPage'),
    at('/runs', () => import('./pages/runs/runs.tsx'), 'RunListPage'),
    at('/runs/$jobId', () => import('./pages/runs/run.tsx'), 'RunPage'),
    at('/webhooks', () => import('./pages/webhooks/webhooks.tsx'), 'WebhookListPage'),
    at('/webhooks/$webhookId', () => import('./pages/webhooks/webhook.tsx'), 'WebhookPage'),
    at('/deliveries/$deliveryId', () => import('./pages/deliveries/delivery.tsx'), 'DeliveryPage'),
    at('/inspector', () => import('./pages/inspector/inspectors.tsx'), 'InspectorListPage'),
    at('/inspector/$inspectorId', () => import('./pages/inspector/inspector.tsx'), 'InspectorPage'),
    at('/events', () => import('./pages/events/events.tsx'), 'EventListPage'),
    at('/events/catalog', () => import('./pages/events/catalog.tsx'), 'CatalogPage'),
    at('/events/$eventId', () => import('./pages/events/event.tsx'), 'EventPage'),
    at('/welcome', () => import('./pages/welcome/first-steps.tsx'), 'WelcomePage'),
    at('/keys', () => import('./pages/keys/keys.tsx'), 'KeyListPage'),
    at('/keys/audit', () => import('./pages/keys/audit.tsx'), 'AuditListPage'),
    at('/system', () => import('./pages/system/system.tsx'), 'SystemPage'),
    workflow.addChildren([
      firstTab,
      tab('/data', () => import('./pages/workflows/data.tsx'), 'DataTab'),
      tab('/runs', () => import('./pages/workflows/tabs.tsx'), 'RunsTab'),
      tab('/changes', () => import('./pages/workflows/changes.tsx'), 'ChangesTab'),
      tab('/quality', () => import('./pages/workflows/quality.tsx'), 'QualityTab'),
      tab('/quarantine', () => import('./pages/workflows/quarantine.tsx'), 'QuarantineTab'),
      tab('/webhooks', () => import('./pages/workflows/tabs.tsx'), 'WebhooksTab'),
      tab('/feeds', () => import('./pages/workflows/feeds.tsx'), 'FeedsTab'),
      tab('/definition', () => import('./pages/workflows/definition.tsx'), 'DefinitionTab'),
      tab('/api', () => import('./pages/workflows/tabs.tsx'), 'ApiTab'),
    ]),
  ]),
  parseSearch,
  stringifySearch,
  scrollRestoration: true,
  // Each run or webhook gets a new component, so that no state leaks, such as a revealed secret or typed text.
  defaultRemountDeps: ({ params }) => params,
  defaultPreload: 'intent',
  defaultErrorComponent: PageError,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
