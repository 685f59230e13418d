/** Building blocks of pages: header, sections, facts, links, empty states and errors. */
import {
  Alert,
  Anchor,
  type AnchorProps,
  Breadcrumbs,
  Button,
  type ButtonProps,
  Center,
  Group,
  Paper,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import { type ReactNode, type Ref, useEffect, useRef } from 'react';
import { FlowhookError } from '../../../client/src/flowhook-client.ts';
import { CommandLine, Copy, IdText } from './copy.tsx';
import styles from './page.module.css';
import { Prose } from './values.tsx';

interface PageHeaderProps {
  /** Also the title of the browser tab. */
  title: string;
  /** Replaces the title in the heading. */
  heading?: ReactNode;
  /** Breadcrumbs: `<PageLink to="/runs">Runs</PageLink>`. */
  up?: ReactNode;
  /** Id of the resource on the page. */
  id?: string;
  /** Beside the heading, such as a state. */
  meta?: ReactNode;
  /** Buttons at the end of the line. */
  actions?: ReactNode;
  /** A sentence below the heading. */
  description?: ReactNode;
}

/**
 * Every page has one header, which contains the only h1. The h1 gets the focus on navigation, so that screen readers
 * start there.
 */
export function PageHeader({ title, heading, up, id, meta, actions, description }: PageHeaderProps) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (hasShown) ref.current?.focus({ preventScroll: true });
    hasShown = true;
  }, []);
  useEffect(() => {
    document.title = `${title} · Flowhook`;
  }, [title]);
  return (
    <Stack gap={4} mb="md" component="header">
      {up !== undefined && (
        <Breadcrumbs fz="xs">
          {up}
          {id !== undefined && <IdText id={id} />}
        </Breadcrumbs>
      )}
      <Group justify="space-between" gap="sm">
        <Group gap="sm" miw={0}>
          <Title order={1} ref={ref} tabIndex={-1} style={{ overflowWrap: 'anywhere' }}>
            {heading ?? title}
          </Title>
          {meta}
        </Group>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {description !== undefined && (
        <Text size="sm" c="dimmed" component="div" maw={760}>
          {description}
        </Text>
      )}
    </Stack>
  );
}

/** On the first page after a load, the browser decides where the focus is. */
let hasShown = false;

interface SectionProps {
  title: string;
  /** Buttons at the end of the heading's line. */
  actions?: ReactNode;
  /** The content has its own frame, such as a table. */
  isBare?: boolean;
  children: ReactNode;
}

export function Section({ title, actions, isBare = false, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h4">
          {title}
        </Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {isBare ? children : <Paper p="sm">{children}</Paper>}
    </section>
  );
}

/** A dimmed name above a value. */
export type Fact = readonly [name: string, value: ReactNode];

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name} className={styles.fact}>
          <Text component="dt" size="xs" c="dimmed">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} className="numbers" style={{ overflowWrap: 'break-word' }}>
            {value}
          </Text>
        </div>
      ))}
    </dl>
  );
}

interface Linked {
  ref?: Ref<HTMLAnchorElement>;
  /** The full text, if it may be cut off. */
  title?: string;
}

/** `<PageLink to="/runs/$jobId" params={{ jobId }}>`. */
export const PageLink = createLink((props: Omit<AnchorProps, 'href'> & Linked) => (
  <Anchor inherit {...props} />
));

/** A link that looks like a button. */
export const ButtonLink = createLink((props: Omit<ButtonProps, 'href'> & Linked) => (
  <Button component="a" variant="default" {...props} />
));

interface EmptyStateProps {
  /** Such as `No runs yet`. */
  title: string;
  /** One or two sentences. */
  children?: ReactNode;
  /** A command that works when pasted: with the real address, and `$FLOWHOOK_KEY` as the key. */
  command?: string;
  action?: ReactNode;
  /** Clears the filters, if they hide all rows. */
  onClear?: (() => void) | undefined;
}

export function EmptyState({ title, children, command, action, onClear }: EmptyStateProps) {
  return (
    <Stack align="center" gap="sm" py="xl" px="md" ta="center">
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Text size="sm" c="dimmed" maw={520} component="div">
          {children}
        </Text>
      )}
      {action}
      {onClear !== undefined && (
        <Button variant="default" onClick={onClear}>
          Clear filters
        </Button>
      )}
      {command !== undefined && <CommandLine command={command} />}
    </Stack>
  );
}

interface ErrorBoxProps {
  error: Error;
  /** What failed, such as `More rows could not be loaded`. */
  title?: string;
  onRetry?: () => void;
  /** Centered on an otherwise empty page. */
  isPage?: boolean;
}

/** Shown in place of content that could not be loaded. */
export function ErrorBox({ error, title = 'Something went wrong', onRetry, isPage = false }: ErrorBoxProps) {
  const box = (
    <Alert color="red" variant="light" title={title} role="alert" maw={640}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          <Prose text={error.message} />
        </Text>
        {error instanceof FlowhookError && error.requestId !== null && (
          <Group gap={4}>
            <Text size="xs" c="dimmed">
              Request id: {error.requestId}
            </Text>
            <Copy value={error.requestId} label="Copy the request id" />
          </Group>
        )}
        {onRetry !== undefined && (
          <Button variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
  return isPage ? (
    <Center component="main" mih="100dvh" p="md">
      {box}
    </Center>
  ) : (
    box
  );
}
