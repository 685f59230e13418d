/** What a page shows or does, as a command. */
import { Button } from '@mantine/core';
import { type CurlRequest, curl } from './curl.ts';
import { Icon } from './icon.tsx';
import { useCopy } from './use-copy.ts';

/** Copies the request as a curl command, with `$FLOWHOOK_KEY` in the place of the key. */
export function CopyAsCurl({ label = 'Copy as curl', ...request }: CurlRequest & { label?: string }) {
  const { copied, copy } = useCopy();
  return (
    <Button
      variant="default"
      leftSection={<Icon name={copied ? 'check' : 'copy'} size={14} />}
      onClick={() => copy(curl(request))}
    >
      {copied ? 'Copied' : label}
    </Button>
  );
}
