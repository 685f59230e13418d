/** Who is signed in. Without a session only the sign-in page is shown, and nothing else is requested. */
import { Center, Loader } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { Scope } from 'flowhook-client';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { SignIn } from './pages/welcome/sign-in.tsx';
import { sayRefused } from './parts/action.tsx';
import { EmptyState, ErrorBox } from './parts/page.tsx';
import { queryClient } from './queries/list.ts';

interface Session {
  team: { id: string; name: string; slug: string };
  key: { id: string; name: string; scopes: Scope[] };
  /** Unless a further call renews it. */
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
    // In another tab somebody else may have signed in.
    if (session.key.id !== queryClient.getQueryData<Session>([SESSION_KEY])?.key.id) forget();
    return session;
  },
  // A service that restarts is found again by itself.
  refetchInterval: ({ state }) => (state.status === 'error' ? LOOK_MS : false),
  // Signing in in one tab is enough for all.
  refetchOnWindowFocus: 'always',
});

const Current = createContext<Session | null>(null);

/** The session of the page. */
export function useSession(): Session & { can: (scope: Scope) => boolean } {
  const session = useContext(Current);
  if (session === null) throw new Error('Only within SessionGate');
  return { ...session, can: (scope) => allows(session.key.scopes, scope) };
}

/**
 * Shows its children to those who are signed in.
 *
 * @param props.token of a one-time link: signs in at once
 */
export function SessionGate({ token, children }: { token: string | null; children: ReactNode }) {
  const welcome = useWelcome(token);
  const [hasBegun, setHasBegun] = useState(false);
  const {
    data: session,
    error,
    isPending,
    refetch,
  } = useQuery({ ...sessionQuery, enabled: !welcome.isBusy });
  useEffect(() => {
    if (session !== null && session !== undefined) setHasBegun(true);
  }, [session]);
  if (welcome.isBusy || isPending) {
    return (
      <Center mih="100dvh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  // While a service restarts, the session is still known, and the page stays.
  if (session === undefined) {
    return error === null ? null : <ErrorBox error={error} onRetry={() => void refetch()} isPage />;
  }
  if (session === null) return <SignIn mistake={welcome.mistake} hasEnded={hasBegun} />;
  return (
    <Current key={session.key.id} value={session}>
      {children}
    </Current>
  );
}

/**
 * Exchanges a key, or the token of a one-time link, for a session.
 *
 * @throws Error with the sentence of the service
 */
export async function signIn(proof: { key: string } | { token: string }): Promise<void> {
  const response = await fetch(SESSION, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(proof),
  });
  const session = await read(response);
  // Whoever comes back may be of another team.
  forget();
  queryClient.setQueryData(sessionQuery.queryKey, session);
}

/** Ends the session, and forgets what was shown in it. */
export async function signOut(): Promise<void> {
  try {
    const response = await fetch(SESSION, { method: 'DELETE' });
    if (!response.ok && response.status !== 401) await read(response);
  } catch (error) {
    // Whoever leaves the machine must know that the session still exists.
    sayRefused(error as Error);
    return;
  }
  queryClient.clear();
  location.assign('/ui/');
}

function forget(): void {
  queryClient.removeQueries({ predicate: ({ queryKey: [kind] }) => kind !== SESSION_KEY });
}

/** Takes the token out of the address, so that neither the history nor a screenshot shows it. */
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
  throw new Error(typeof sentence === 'string' ? sentence : `The service answered ${response.status}`);
}

/** The same rule as in the service: `admin` includes every scope of the team, `operator` all. */
function allows(scopes: readonly Scope[], needed: Scope): boolean {
  if (scopes.includes(needed) || scopes.includes('operator')) return true;
  return needed !== 'operator' && scopes.includes('admin');
}

/** @param props.scope that is missing */
export function NeedsScope({ scope, what }: { scope: Scope /** Such as `webhooks`. */; what: string }) {
  const { key } = useSession();
  return (
    <EmptyState title={`This key may not see ${what}`}>
      It takes a key with the scope <code>{scope}</code>. You are signed in with <b>{key.name}</b>, which has{' '}
      {key.scopes.join(', ')}.
    </EmptyState>
  );
}
