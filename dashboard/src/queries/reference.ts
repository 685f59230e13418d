/** The description of the API, which the service gives to everybody. */
import { queryOptions } from '@tanstack/react-query';
import { type OpenApi, withSharedAnswers } from '../pages/reference/openapi.ts';

export const referenceQuery = () =>
  queryOptions({
    queryKey: ['reference'],
    queryFn: async ({ signal }): Promise<OpenApi> => {
      const response = await fetch('/openapi.json', { signal });
      if (!response.ok) throw new Error(`The service answered ${response.status}`);
      return withSharedAnswers((await response.json()) as OpenApi);
    },
    // It changes with the service alone, and then the page is another one too.
    staleTime: 'static',
  });
