/** Selects the version to show. */
import { Select } from '@mantine/core';
import type { Version } from 'flowhook-client';
import { useNow } from '../../parts/now.ts';
import { relative } from '../../parts/times.ts';

export function VersionPicker({
  versions,
  newest,
  version,
  onChange,
}: {
  /** Those that are kept, the newest first, as far as they are loaded. */
  versions: readonly Version[];
  newest: number;
  version: number;
  onChange: (version: number) => void;
}) {
  const nowMs = useNow();
  if (newest === 0) return null;
  const known = versions.map(({ number, publishedAt }) => ({
    value: String(number),
    label: `Version ${number}, ${relative(publishedAt, nowMs)}`,
  }));
  const isKnown = known.some(({ value }) => value === String(version));
  return (
    <Select
      aria-label="Version"
      data={isKnown ? known : [{ value: String(version), label: `Version ${version}` }, ...known]}
      value={String(version)}
      onChange={(value) => value !== null && onChange(Number(value))}
      allowDeselect={false}
      searchable={known.length > 12}
      w={200}
    />
  );
}
