/** The sign-in page. The API key is exchanged for a session immediately and never stored. */
import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Note } from '../../parts/values.tsx';
import { signIn } from '../../session.tsx';

/**
 * @param props.mistake why a one-time link failed
 * @param props.hasEnded whether a session has just ended, after which the page is restored
 */
export function SignIn({ mistake, hasEnded }: { mistake: string | null; hasEnded: boolean }) {
  const [key, setKey] = useState('');
  const { mutate, error, isPending } = useMutation({ mutationFn: () => signIn({ key: key.trim() }) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() !== '') mutate();
  };
  return (
    <Center component="main" mih="100dvh" p="md">
      <Paper w="100%" maw={420} p="lg">
        <Stack component="form" onSubmit={submit} gap="md">
          <Title order={1}>Sign in to Flowhook</Title>
          {mistake !== null && error === null && (
            <Alert color="yellow" title="The sign-in link did not work">
              {mistake}
            </Alert>
          )}
          {hasEnded && error === null && (
            <Alert role="status" color="yellow" title="Your session has ended">
              It expired, or its key was revoked. Sign in again to continue where you left off.
            </Alert>
          )}
          <PasswordInput
            label="API key"
            description="Exchanged for a session in this browser. The key itself is not stored."
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={error?.message}
            errorProps={{ role: 'alert' }}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
            autoFocus
            required
            withAsterisk={false}
          />
          <Button type="submit" size="sm" loading={isPending}>
            Sign in
          </Button>
          <Note>
            The service printed a key on its first start. <Code>npx flowhook dashboard</Code> prints a sign-in
            link, and <Code>npx flowhook keys create</Code> creates another key.{' '}
            <Anchor href="/docs/guide/" underline="always">
              Guide
            </Anchor>
            {' · '}
            <Anchor href="/docs" underline="always">
              API reference
            </Anchor>
          </Note>
        </Stack>
      </Paper>
    </Center>
  );
}
