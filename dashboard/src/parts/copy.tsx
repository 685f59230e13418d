/** What can be copied: values, ids, commands, and requests as curl; and files to save. */

import { ActionIcon, Box, Group, Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import { serviceUrl } from '../client.ts';
import { ActionButton, sayRefused } from './action.tsx';
import styles from './copy.module.css';
import { Icon } from './icon.tsx';

interface CopyProps {
  /** What is copied; a function is asked when it is. */
  value: string | (() => string);
  /** What the button says to those who do not see it; `Copy` unless told. */
  label?: string;
}

/** Copies a value, and says so. */
export function Copy({ value, label = 'Copy' }: CopyProps) {
  const { copied, copy } = useCopy();
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon
        size="sm"
        aria-label={copied ? 'Copied' : label}
        color={copied ? 'teal' : 'gray'}
        onClick={(event) => {
          // Not the row that the button stands in.
          event.stopPropagation();
          copy(typeof value === 'string' ? value : value());
        }}
      >
        <Icon name={copied ? 'check' : 'copy'} size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

/** How long a button shows that it has copied, in milliseconds. */
const SAYS_MS = 1_500;

/** Copies a text; shows an error if neither way works. */
export function useCopy(): { copied: boolean; copy: (text: string) => void } {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SAYS_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (text: string) => {
    if (await isCopied(text)) setCopied(true);
    else sayRefused(new Error('The browser did not let the page copy: choose the text, and press Ctrl+C'));
  };
  return { copied, copy: (text) => void copy(text) };
}

async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return isCopiedFromField(text);
  }
}

/** The field is put beside the focused element: a dialog or a table row would otherwise notice the focus leaving. */
function isCopiedFromField(text: string): boolean {
  const focused = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  (focused?.parentElement ?? document.body).append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  focused?.focus({ preventScroll: true });
  return isDone;
}

interface CommandLineProps {
  /** One or more lines. */
  command: string;
  /** What the copy button is called; `Copy the command` unless told. */
  label?: string;
}

/** A command as one would type it, with its copy button. */
export function CommandLine({ command, label = 'Copy the command' }: CommandLineProps) {
  return (
    <Group wrap="nowrap" gap={4} align="flex-start" className={styles.box} maw="100%">
      <Box component="pre" className={styles.text} tabIndex={0}>
        {command}
      </Box>
      <Copy value={command} label={label} />
    </Group>
  );
}

/** Copies the request as a curl command, with `$FLOWHOOK_KEY` in the place of the key. */
export function CopyAsCurl({ path }: { path: string }) {
  const { copied, copy } = useCopy();
  return (
    <ActionButton icon={copied ? 'check' : 'copy'} action={() => copy(curl({ path }))}>
      {copied ? 'Copied' : 'Copy as curl'}
    </ActionButton>
  );
}

interface CurlRequest {
  /** GET unless told. */
  method?: string;
  /** With its query: `/v1/jobs?state=failed`. */
  path: string;
  /** Sent as JSON. */
  json?: unknown;
}

/** A curl command that works once `FLOWHOOK_KEY` holds a key: the page knows none. */
export function curl({ method = 'GET', path, json }: CurlRequest): string {
  return [
    'curl -sS',
    method === 'GET' ? '' : `-X ${method}`,
    `-H "x-api-key: $FLOWHOOK_KEY"`,
    json === undefined ? '' : `-H 'content-type: application/json' -d ${quoted(JSON.stringify(json))}`,
    quoted(serviceUrl + path),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * An id with its copy button.
 *
 * @param props.isShort shortened to its prefix and last letters; the title and the copy button have all of it
 */
export function IdText({ id, isShort = false }: { id: string; isShort?: boolean }) {
  const text = isShort && id.length > 14 ? `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}` : id;
  return (
    <Group gap={2} wrap="nowrap" miw={0} component="span" display="inline-flex">
      <Text span inherit ff="monospace" fz="0.92em" title={id} truncate>
        {text}
      </Text>
      <Copy value={id} label={`Copy ${id}`} />
    </Group>
  );
}

/** @param type such as `text/plain` */
export function save(name: string, content: string | Blob, type?: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: type ?? 'text/plain' }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
