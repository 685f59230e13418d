/** The log of a run, by attempt, followed while the run is in progress. */
import { Group, Highlight, SegmentedControl, Switch, Text, TextInput } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Job, LogLine } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { save, useCopy } from '../../parts/copy.tsx';
import { absolute, many, useZone } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { ErrorBox } from '../../parts/page.tsx';
import { useRowName } from '../../parts/rows.tsx';
import { Note } from '../../parts/values.tsx';
import styles from './log.module.css';
import { type Line, logRows, plainLog } from './log.ts';

export function RunLog({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number>();
  const { lines, error, isLoading } = useJobLog(job, chosen);
  if (job.attempt === 0) {
    return <Note>No log yet: the run has not started.</Note>;
  }
  const attempts = Array.from({ length: job.attempt }, (_, index) => String(index + 1));
  return (
    <>
      {attempts.length > 1 && (
        <SegmentedControl
          aria-label="Attempt"
          mb="xs"
          data={attempts.map((value) => ({ value, label: `Attempt ${value}` }))}
          value={String(chosen ?? job.attempt)}
          onChange={(value) => setChosen(Number(value) === job.attempt ? undefined : Number(value))}
        />
      )}
      {error !== null && <ErrorBox error={error} title="The rest of the log could not be loaded" />}
      {!isLoading && lines.length === 0 && error === null && job.finishedAt !== null ? (
        <Note>No output. The log shows what commands write to standard error and what modules log.</Note>
      ) : (
        <LogView
          lines={lines}
          isLive={job.finishedAt === null && chosen === undefined}
          fileName={`${job.id}.log`}
        />
      )}
    </>
  );
}

interface JobLog {
  lines: readonly Line[];
  error: Error | null;
  isLoading: boolean;
}

/** Lines that arrive within this time are rendered together. */
const GATHER_MS = 100;
const NOTHING: JobLog = { lines: [], error: null, isLoading: true };

/** @param attempt an attempt that has ended; undefined follows the current and later attempts */
function useJobLog(job: Job, attempt: number | undefined): JobLog {
  const [log, setLog] = useState<JobLog>(NOTHING);
  const jobId = job.id;
  const hasStarted = job.attempt > 0;
  useEffect(() => {
    if (!hasStarted) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let lines: JobLog['lines'] = [];
    let fresh: Line[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (changes: Partial<JobLog> = {}) => {
      clearTimeout(timer);
      timer = undefined;
      lines = [...lines, ...fresh];
      fresh = [];
      // Until the first line or the end of the log, it is unknown whether there are any lines.
      if (!signal.aborted) setLog({ lines, error: null, isLoading: lines.length === 0, ...changes });
    };
    const read = async () => {
      const source =
        attempt === undefined
          ? flowhook.jobs.followLogs(jobId, { signal })
          : attemptLog(jobId, { attempt, signal });
      timer = setTimeout(show, GATHER_MS);
      for await (const line of source) {
        fresh.push(attempt === undefined ? line : { ...line, attempt });
        timer ??= setTimeout(show, GATHER_MS);
      }
    };
    setLog(NOTHING);
    read().then(
      () => show({ isLoading: false }),
      (error: Error) => show({ error, isLoading: false }),
    );
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [jobId, attempt, hasStarted]);
  return log;
}

export async function* attemptLog(
  jobId: string,
  options: { attempt: number; signal?: AbortSignal },
): AsyncGenerator<LogLine> {
  for (let after = 0; ; ) {
    const { lines, next } = await flowhook.jobs.logs(jobId, { ...options, after });
    yield* lines;
    if (next === null || lines.length === 0) return;
    after = next;
  }
}

interface LogViewProps {
  lines: readonly Line[];
  /** Whether more lines are coming. If so, the view follows the end while it is scrolled there. */
  isLive?: boolean;
  /** The name of the downloaded file: `job_….log`. */
  fileName: string;
}

const LINE_PX = 19;
/** A view within this distance of the end counts as scrolled to the end. */
const NEAR_PX = 40;

function LogView({ lines, isLive = false, fileName }: LogViewProps) {
  const [search, setSearch] = useState('');
  const [wraps, setWraps] = useState(true);
  const [isNewestFirst, setNewestFirst] = useState(false);
  const [follows, setFollows] = useState(isLive);
  const zone = useZone();
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
          <ActionButton action={() => copy(plainLog(lines))} label={copied ? 'Copied' : 'Copy'} />
          <ActionButton
            icon="download"
            action={() => save(fileName, plainLog(lines), 'text/plain')}
            label="Download"
          />
        </Group>
      </Group>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would be a form, and the section around it is already a landmark */}
      <div
        ref={box}
        className={styles.box}
        role="group"
        aria-label="Log lines"
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

const URLS = /(https?:\/\/[^\s"'<>)\]}]+)/;

/** The text of a line, with links and highlighted search results; never markup. */
function LogText({ text, search }: { text: string; search: string }) {
  // The pattern has one group, so every second part is a URL.
  return text.split(URLS).map((part, index) => {
    const key = `${index} ${part}`;
    const found = (
      <Highlight key={key} span inherit highlight={search}>
        {part}
      </Highlight>
    );
    return index % 2 === 0 ? (
      found
    ) : (
      <a key={key} href={part} target="_blank" rel="noopener noreferrer">
        {found}
      </a>
    );
  });
}
