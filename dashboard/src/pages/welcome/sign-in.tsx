/** Signing in with an API key, which the page gives away at once and keeps nowhere. */
import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { signIn } from '../../session.tsx';

/**
 * @param props.mistake why a one-time link did not sign in
 * @param props.hasEnded there was a session: what was shown comes back after it
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
            <Alert color="yellow" title="The link did not sign you in">
              {mistake}
            </Alert>
          )}
          {hasEnded && error === null && (
            <Alert role="status" color="yellow" title="Your session has ended">
              It was too old, or its key was revoked. Sign in again to continue where you were.
            </Alert>
          )}
          <PasswordInput
            label="API key"
            description="It is exchanged for a session of this browser and stored nowhere else."
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
          <Text size="sm" c="dimmed">
            The first start of the service printed a key. <Code>npx flowhook dashboard</Code> prints a link
            that signs you in, <Code>npx flowhook keys create</Code> makes another key.{' '}
            <Anchor href="/docs/guide/" underline="always">
              Guide
            </Anchor>
            {' · '}
            <Anchor href="/docs" underline="always">
              API reference
            </Anchor>
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}
