/** The providers around every page: theme, queries, dialogs, notifications, session, routes. */
import { MantineProvider } from '@mantine/core';
import { ModalsProvider } from '@mantine/modals';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { queryClient } from './queries/query-client.ts';
import { router } from './routes.tsx';
import { SessionGate } from './session.tsx';
import { colorScheme, cssVariables, theme } from './theme.ts';

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
// What Mantine's dialogs keep the page from scrolling with looks for it here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** @param props.token of a one-time link */
export function App({ token }: { token: string | null }) {
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      colorSchemeManager={colorScheme}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queryClient}>
        <ModalsProvider>
          <Notifications position="bottom-right" limit={4} />
          <SessionGate token={token}>
            <RouterProvider router={router} />
          </SessionGate>
        </ModalsProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}
