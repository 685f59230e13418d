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
const under = { getParentRoute: () => root };

const overview = createRoute({
  ...under,
  path: '/',
  component: page(() => import('./pages/overview/overview.tsx'), 'OverviewPage'),
});
const workflows = createRoute({
  ...under,
  path: '/workflows',
  component: page(() => import('./pages/workflows/workflows.tsx'), 'WorkflowListPage'),
});
const workflow = createRoute({
  ...under,
  path: '/workflows/$workflowId',
  component: page(() => import('./pages/workflows/workflow.tsx'), 'WorkflowPage'),
});
const ofWorkflow = { getParentRoute: () => workflow };
const workflowIndex = createRoute({
  ...ofWorkflow,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/workflows/$workflowId/data', params, replace: true });
  },
});
const workflowData = createRoute({
  ...ofWorkflow,
  path: '/data',
  component: page(() => import('./pages/workflows/data.tsx'), 'DataTab'),
});
const workflowRuns = createRoute({
  ...ofWorkflow,
  path: '/runs',
  component: page(() => import('./pages/workflows/tabs.tsx'), 'RunsTab'),
});
const workflowChanges = createRoute({
  ...ofWorkflow,
  path: '/changes',
  component: page(() => import('./pages/workflows/changes.tsx'), 'ChangesTab'),
});
const workflowWebhooks = createRoute({
  ...ofWorkflow,
  path: '/webhooks',
  component: page(() => import('./pages/workflows/tabs.tsx'), 'WebhooksTab'),
});
const workflowDefinition = createRoute({
  ...ofWorkflow,
  path: '/definition',
  component: page(() => import('./pages/workflows/definition.tsx'), 'DefinitionTab'),
});
const workflowApi = createRoute({
  ...ofWorkflow,
  path: '/api',
  component: page(() => import('./pages/workflows/tabs.tsx'), 'ApiTab'),
});
const runs = createRoute({
  ...under,
  path: '/runs',
  component: page(() => import('./pages/runs/runs.tsx'), 'RunListPage'),
});
const run = createRoute({
  ...under,
  path: '/runs/$jobId',
  component: page(() => import('./pages/runs/run.tsx'), 'RunPage'),
});
const webhooks = createRoute({
  ...under,
  path: '/webhooks',
  component: page(() => import('./pages/webhooks/webhooks.tsx'), 'WebhookListPage'),
});
const webhook = createRoute({
  ...under,
  path: '/webhooks/$webhookId',
  component: page(() => import('./pages/webhooks/webhook.tsx'), 'WebhookPage'),
});
const delivery = createRoute({
  ...under,
  path: '/deliveries/$deliveryId',
  component: page(() => import('./pages/deliveries/delivery.tsx'), 'DeliveryPage'),
});
const inspectors = createRoute({
  ...under,
  path: '/inspector',
  component: page(() => import('./pages/inspector/inspectors.tsx'), 'InspectorListPage'),
});
const inspector = createRoute({
  ...under,
  path: '/inspector/$inspectorId',
  component: page(() => import('./pages/inspector/inspector.tsx'), 'InspectorPage'),
});
const events = createRoute({
  ...under,
  path: '/events',
  component: page(() => import('./pages/events/events.tsx'), 'EventListPage'),
});
const catalogue = createRoute({
  ...under,
  path: '/events/catalogue',
  component: page(() => import('./pages/events/catalogue.tsx'), 'CataloguePage'),
});
const event = createRoute({
  ...under,
  path: '/events/$eventId',
  component: page(() => import('./pages/events/event.tsx'), 'EventPage'),
});
const welcome = createRoute({
  ...under,
  path: '/welcome',
  component: page(() => import('./pages/welcome/first-steps.tsx'), 'WelcomePage'),
});
const keys = createRoute({
  ...under,
  path: '/keys',
  component: page(() => import('./pages/keys/keys.tsx'), 'KeyListPage'),
});
const audit = createRoute({
  ...under,
  path: '/keys/audit',
  component: page(() => import('./pages/keys/audit.tsx'), 'AuditListPage'),
});
const system = createRoute({
  ...under,
  path: '/system',
  component: page(() => import('./pages/system/system.tsx'), 'SystemPage'),
});

export const router = createRouter({
  basepath: '/ui',
  routeTree: root.addChildren([
    overview,
    workflows,
    workflow.addChildren([
      workflowIndex,
      workflowData,
      workflowRuns,
      workflowChanges,
      workflowWebhooks,
      workflowDefinition,
      workflowApi,
    ]),
    runs,
    run,
    webhooks,
    webhook,
    delivery,
    inspectors,
    inspector,
    events,
    catalogue,
    event,
    welcome,
    keys,
    audit,
    system,
  ]),
  parseSearch,
  stringifySearch,
  scrollRestoration: true,
  // Another run or webhook is mounted anew: no state stays, such as a secret that was shown or text that was typed.
  defaultRemountDeps: ({ params }) => params,
  defaultPreload: 'intent',
  defaultErrorComponent: PageError,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
