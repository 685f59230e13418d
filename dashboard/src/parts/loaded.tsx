/** The page of one resource: its content, a loader, an error, or the missing scope. */
import { Loader } from '@mantine/core';
import { type DefaultError, type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Scope } from '../../../client/src/flowhook-client.ts';
import { NeedsScope, useSession } from '../session.tsx';
import { ErrorBox, PageHeader } from './page.tsx';

/** @param props.title the title of the page while there is no content; omitted for a part of a page */
export function Loaded<Data, Key extends QueryKey>(props: {
  query: UseQueryOptions<Data, DefaultError, Data, Key>;
  title?: string;
  /** The scope that the page needs. */
  scope?: Scope;
  /** What the key cannot see without the scope: `webhooks`. */
  what?: string;
  children: (data: Data) => ReactNode;
}) {
  const { query, title, scope = 'read', what = '', children } = props;
  const { can } = useSession();
  const { data, error, refetch } = useQuery({ ...query, enabled: can(scope) });
  if (data !== undefined) return children(data);
  if (can(scope) && error === null) return <Loader aria-label="Loading" size="sm" m="xl" />;
  return (
    <>
      {title !== undefined && <PageHeader title={title} />}
      {error === null ? (
        <NeedsScope scope={scope} what={what} />
      ) : (
        <ErrorBox error={error} onRetry={() => void refetch()} />
      )}
    </>
  );
}
