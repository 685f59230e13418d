/** The log of a run, virtualized; entries of several lines stay together. */
import { Button, Group, Switch, Text, TextInput } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Icon } from './icon.tsx';
import { type Line, logRows, plainLog } from './log-rows.ts';
import { LogText } from './log-text.tsx';
import styles from './log-view.module.css';
import { many } from './quantity.ts';
import { useRowName } from './row-name.ts';
import { save } from './save.ts';
import { absolute, useTimeStyle } from './times.ts';
import { useCopy } from './use-copy.ts';

export interface LogViewProps {
  /** In the order in which they were written. */
  lines: readonly Line[];
  /** More lines are coming: the view follows the end while it is scrolled there. */
  isLive?: boolean;
  /** What the downloaded file is called: `job_….log`. */
  fileName: string;
}

const LINE_PX = 19;
/** Within this many pixels of the end counts as at the end. */
const NEAR_PX = 40;

/** Search (`/`), wrap, newest first, follow, copy, download. */
export function LogView({ lines, isLive = false, fileName }: LogViewProps) {
  const [search, setSearch] = useState('');
  const [wraps, setWraps] = useState(true);
  const [isNewestFirst, setNewestFirst] = useState(false);
  const [follows, setFollows] = useState(isLive);
  const zone = useTimeStyle() === 'utc' ? 'utc' : 'local';
  const { copied, copy } = useCopy();
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => logRows(lines, { search, isNewestFirst }), [lines, search, isNewestFirst]);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
    getItemKey: useRowName(rows, ({ key }) => key),
  });
  const isFollowing = isLive && follows && !isNewestFirst;
  useEffect(() => {
    if (isFollowing && rows.length > 0) virtualizer.scrollToIndex(rows.length - 1, { align: 'end' });
  }, [isFollowing, rows.length, virtualizer]);

  const found = rows.filter(({ kind }) => kind === 'line').length;
  return (
    <div>
      <Group gap="sm" mb="xs">
        <TextInput
          type="search"
          aria-label="Search the log"
          placeholder="Search the log"
          leftSection={<Icon name="search" size={14} />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          data-search
          w={220}
        />
        <Text size="xs" c="dimmed" aria-live="polite">
          {search === '' ? many(lines.length, 'line') : `${many(found, 'line')} of ${lines.length}`}
        </Text>
        <Group gap="sm" ms="auto">
          <Switch label="Wrap" checked={wraps} onChange={(event) => setWraps(event.currentTarget.checked)} />
          <Switch
            label="Newest first"
            checked={isNewestFirst}
            onChange={(event) => setNewestFirst(event.currentTarget.checked)}
          />
          {isLive && !isNewestFirst && (
            <Switch
              label="Follow"
              checked={follows}
              onChange={(event) => setFollows(event.currentTarget.checked)}
            />
          )}
          <Button variant="default" onClick={() => copy(plainLog(lines))}>
            {copied ? 'Copied' : 'Copy'}
          </Button>
          <Button
            variant="default"
            leftSection={<Icon name="download" size={14} />}
            onClick={() => save(fileName, plainLog(lines), 'text/plain')}
          >
            Download
          </Button>
        </Group>
      </Group>
      {/* biome-ignore lint/a11y/useSemanticElements: it is no form, and the section around it is the landmark */}
      <div
        ref={box}
        className={styles.box}
        role="group"
        aria-label="Lines of the log"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          // Scrolling up stops following; scrolling back to the end resumes it.
          if (isLive) setFollows(scrollTop + clientHeight >= scrollHeight - NEAR_PX);
        }}
      >
        <div className={styles.all} style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <div
                key={key}
                ref={virtualizer.measureElement}
                data-index={index}
                className={styles.row}
                data-wraps={wraps}
                style={{ transform: `translateY(${start}px)` }}
              >
                {row.kind === 'note' ? (
                  <span className={styles.note}>{row.text}</span>
                ) : (
                  <>
                    <time
                      className={styles.time}
                      dateTime={row.line.time}
                      title={absolute(row.line.time, zone)}
                    >
                      {absolute(row.line.time, zone).slice(11, 19)}
                    </time>
                    <span className={styles.level} data-level={row.line.level}>
                      {row.line.level}
                    </span>
                    <span className={styles.text}>
                      <LogText text={row.line.text} search={search} />
                    </span>
                  </>
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
