/** The header of a page: breadcrumbs, title, actions. */
import { Breadcrumbs, Group, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';

export interface PageHeaderProps {
  /** Also the title of the browser's tab. */
  title: string;
  /** Instead of the title in the heading, such as one with its copy button. */
  heading?: ReactNode;
  /** Links to the pages above: `[<PageLink key="up" to="/runs">Runs</PageLink>]`. */
  parents?: ReactNode[];
  /** Beside the heading: a state, an id. */
  meta?: ReactNode;
  /** Buttons, at the end of the line. */
  actions?: ReactNode;
  /** A sentence below. */
  description?: ReactNode;
}

/** Every page has one, with the only h1. On navigation the focus goes there, so that screen readers begin there. */
export function PageHeader({ title, heading, parents, meta, actions, description }: PageHeaderProps) {
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
      {parents !== undefined && <Breadcrumbs fz="xs">{parents}</Breadcrumbs>}
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

/** The first page after a load leaves the focus where the browser puts it. */
let hasShown = false;
