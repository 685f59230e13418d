/** A page of one thing: until it is there, that it is loading, why it cannot be read, or that it may not be seen. */
import { Loader } from '@mantine/core';
import { type DefaultError, type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import type { Scope } from 'flowhook-client';
import type { ReactNode } from 'react';
import { NeedsScope, useSession } from '../session.tsx';
import { ErrorBox, PageHeader } from './page.tsx';

/** @param props.title of the page that is shown meanwhile; without one, it is a part of a page */
export function Loaded<Data, Key extends QueryKey>({
  query,
  title,
  scope = 'read',
  what = '',
  children,
}: {
  query: UseQueryOptions<Data, DefaultError, Data, Key>;
  title?: string;
  /** What it takes to see it, and what it is called then: `webhooks`. */
  scope?: Scope;
  what?: string;
  children: (data: Data) => ReactNode;
}) {
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
