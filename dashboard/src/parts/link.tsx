/** Links to pages of the dashboard: their addresses are checked with the types of the routes. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { Ref } from 'react';

interface Linked {
  ref?: Ref<HTMLAnchorElement>;
  /** The whole of what may be cut off. */
  title?: string;
}

/** `<PageLink to="/runs/$jobId" params={{ jobId }}>`. */
export const PageLink = createLink((props: Omit<AnchorProps, 'href'> & Linked) => (
  <Anchor inherit {...props} />
));

/** The same that looks like a button. */
export const ButtonLink = createLink((props: Omit<ButtonProps, 'href'> & Linked) => (
  <Button component="a" variant="default" {...props} />
));
