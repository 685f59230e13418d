/** Which version to show while new ones are published: the newest, but never replacing one that is being read. */
import { useEffect, useState } from 'react';

/** The newest version, until somebody begins to read: then that one stays. */
export function useFollowed(newest: number): [version: number, set: (version: number) => void] {
  const [followed, setFollowed] = useState(newest);
  useEffect(() => {
    setFollowed((before) => (before === 0 || !isReading() ? newest : before));
  }, [newest]);
  return [followed, setFollowed];
}

/** Scrolled, looking at one, or somewhere in the table. */
function isReading(): boolean {
  const box = document.querySelector('[data-scrolls]');
  return (
    scrollY > 0 ||
    (box !== null && (box.scrollTop > 0 || box.contains(document.activeElement))) ||
    document.querySelector('[role="dialog"]') !== null
  );
}
