/** In the place of what the key of the session may not see. */
import type { Scope } from 'flowhook-client';
import { useSession } from '../session.tsx';
import { EmptyState } from './empty-state.tsx';

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
