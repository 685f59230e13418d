/** The session. Without one, only the sign-in page is shown and nothing else is requested. */
import { Center, Loader } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import type { Scope } from '../../client/src/flowhook-client.ts';
import { SignIn } from './pages/welcome/sign-in.tsx';
import { notifyFailure } from './parts/action.tsx';
import { EmptyState, ErrorBox, PageLink } from './parts/page.tsx';
import { queryClient } from './queries/list.ts';

interface Session {
  team: { id: string; name: string; slug: string };
  key: { id: string; name: string; scopes: Scope[] };
  /** When the session ends. Each call renews the session. */
  expiresAt: string | null;
}

const SESSION = '/ui/api/session';
const SESSION_KEY = 'session';
const LOOK_MS = 3_000;

const sessionQuery = queryOptions({
  queryKey: [SESSION_KEY],
  queryFn: async ({ signal }): Promise<Session | null> => {
    const response = await fetch(SESSION, { signal });
    if (response.status === 401) return null;
    const session = await read(response);
    // Another tab may have signed in with another key.
    if (session.key.id !== queryClient.getQueryData<Session>([SESSION_KEY])?.key.id) forget();
    return session;
  },
  // Reconnects by itself after a restart of the service.
  refetchInterval: ({ state }) => (state.status === 'error' ? LOOK_MS : false),
  // Signing in once is enough for all tabs.
  refetchOnWindowFocus: 'always',
});

const Current = createContext<Session | null>(null);

export function useSession(): Session & { can: (scope: Scope) => boolean } {
  const session = useContext(Current);
  if (session === null) throw new Error('useSession needs a SessionGate above it');
  return { ...session, can: (scope) => allows(session.key.scopes, scope) };
}

/**
 * Shows its children only in a session, and the sign-in page otherwise.
 *
 * @param props.token of a one-time link: exchanged for a session immediately
 */
export function SessionGate({ token, children }: { token: string | null; children: ReactNode }) {
  const welcome = useWelcome(token);
  const [hadSession, setHadSession] = useState(false);
  const {
    data: session,
    error,
    isPending,
    refetch,
  } = useQuery({ ...sessionQuery, enabled: !welcome.isBusy });
  useEffect(() => {
    if (session !== null && session !== undefined) setHadSession(true);
  }, [session]);
  if (welcome.isBusy || isPending) {
    return (
      <Center mih="100dvh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  // While the service restarts, the last known session keeps the page.
  if (session === undefined) {
    return error === null ? null : <ErrorBox error={error} onRetry={() => void refetch()} isPage />;
  }
  if (session === null) return <SignIn mistake={welcome.mistake} hasEnded={hadSession} />;
  return (
    <Current key={session.key.id} value={session}>
      {children}
    </Current>
  );
}

/**
 * Exchanges a key, or the token of a one-time link, for a session.
 *
 * @throws Error with the service's message
 */
export async function signIn(proof: { key: string } | { token: string }): Promise<void> {
  const response = await fetch(SESSION, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(proof),
  });
  const session = await read(response);
  // The new key may belong to another team.
  forget();
  queryClient.setQueryData(sessionQuery.queryKey, session);
}

/** Ends the session, and clears everything that it fetched. */
export async function signOut(): Promise<void> {
  try {
    const response = await fetch(SESSION, { method: 'DELETE' });
    if (!response.ok && response.status !== 401) await read(response);
  } catch (error) {
    // Anyone who leaves the machine must know that the session still exists.
    notifyFailure(error as Error);
    return;
  }
  queryClient.clear();
  location.assign('/ui/');
}

function forget(): void {
  queryClient.removeQueries({ predicate: ({ queryKey: [kind] }) => kind !== SESSION_KEY });
}

/** Removes the token from the URL, so that neither the history nor a screenshot shows it. */
export function takeToken(): string | null {
  const [, token] = /^#\/welcome\/([\w-]+)$/.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(null, '', location.pathname + location.search);
  return token;
}

function useWelcome(token: string | null): { isBusy: boolean; mistake: string | null } {
  const [state, setState] = useState({ isBusy: token !== null, mistake: null as string | null });
  useEffect(() => {
    if (token === null) return;
    signIn({ token }).then(
      () => setState({ isBusy: false, mistake: null }),
      (error: Error) => setState({ isBusy: false, mistake: error.message }),
    );
  }, [token]);
  return state;
}

async function read(response: Response): Promise<Session> {
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as Session;
  const sentence = (body as { error?: unknown } | null)?.error;
  throw new Error(
    typeof sentence === 'string'
      ? sentence
      : `The service returned status ${response.status}. Try again, or check its log.`,
  );
}

/** The service's rule: `admin` includes all scopes of the team, `operator` includes every scope. */
function allows(scopes: readonly Scope[], needed: Scope): boolean {
  if (scopes.includes(needed) || scopes.includes('operator')) return true;
  return needed !== 'operator' && scopes.includes('admin');
}

/** Content that needs a scope; without it, a note that the key cannot see it. @param props.what such as `webhooks` */
export function NeedsScope({ scope, what, children }: { scope: Scope; what: string; children?: ReactNode }) {
  const { key, can } = useSession();
  return can(scope) ? (
    children
  ) : (
    <EmptyState title={`Your key cannot see ${what}`}>
      This page needs the scope <code>{scope}</code>. You are signed in with <b>{key.name}</b>, which has{' '}
      {key.scopes.join(', ')}. Sign in with another key, or ask an administrator for one.
    </EmptyState>
  );
}

/** The variable that commands read the key from, for use in a sentence. */
export function KeyVariable() {
  const { can } = useSession();
  return (
    <>
      the environment variable <code>FLOWHOOK_KEY</code>
      {can('admin') && (
        <>
          {' ('}
          <PageLink to="/keys" underline="always">
            create one
          </PageLink>
          )
        </>
      )}
    </>
  );
}
