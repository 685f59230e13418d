/** The welcome page: the first steps of a new team, also when they are done. */
import { Anchor, Stack, Text } from '@mantine/core';
import { PageLink } from '../../parts/link.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { useSession } from '../../session.tsx';
import { Steps } from './first-steps.tsx';

export function WelcomePage() {
  const { can, team } = useSession();
  return (
    <>
      <PageHeader
        title="Welcome"
        description={
          <>
            Workflows of <b>{team.name}</b> run as jobs, jobs publish records, records are read over HTTP, and
            webhooks are called.
          </>
        }
      />
      <Stack gap="md">
        <Steps />
        <Text size="sm" c="dimmed">
          Commands take the key from the variable <code>FLOWHOOK_KEY</code>
          {can('admin') && (
            <>
              {' '}
              (
              <PageLink to="/keys" underline="always">
                make one
              </PageLink>
              )
            </>
          )}
          . Everything that the service can do is in the{' '}
          <PageLink to="/reference" underline="always">
            API reference
          </PageLink>
          , or{' '}
          <Anchor inherit href="/docs" underline="always">
            on one page
          </Anchor>
          ; how to use it, in the{' '}
          <Anchor inherit href="/docs/guide/" underline="always">
            guide
          </Anchor>
          . <b>?</b> shows the keys of the dashboard, <b>Ctrl+K</b> finds everything by its name.
        </Text>
      </Stack>
    </>
  );
}
