/** Starts the dashboard. A one-time link carries its token in the URL fragment, which browsers never send to a server. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import '@mantine/spotlight/styles.css';
import './app.css';
import { MantineProvider } from '@mantine/core';
import { ModalsProvider } from '@mantine/modals';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { queryClient } from './queries/list.ts';
import { router } from './routes.tsx';
import { SessionGate, takeToken } from './session.tsx';
import { colorScheme, cssVariables, theme } from './theme.ts';

const token = takeToken();
// Opening a one-time link in a tab that already shows the dashboard changes only the fragment, which reloads nothing.
addEventListener('hashchange', () => location.hash.startsWith('#/welcome/') && location.reload());
const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App token={token} />);

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
// The scroll lock of Mantine's dialogs reads the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** @param props.token of a one-time link */
function App({ token }: { token: string | null }) {
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
