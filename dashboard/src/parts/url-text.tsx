/**
 * A URL in one line: where it does not fit, its middle is cut. The title has all of it, as has the copy of a selection,
 * and what a screen reader hears. `https://` goes without saying, as in the address bar of a browser.
 */

import { urlParts } from './url-parts.ts';
import styles from './url-text.module.css';

export function UrlText({ url }: { url: string }) {
  const { scheme, host, middle, end } = urlParts(url);
  return (
    <span
      className={styles.url}
      title={url}
      onCopy={(event) => {
        const selection = getSelection();
        const isWithin = (node: Node | null | undefined) => event.currentTarget.contains(node ?? null);
        if (!isWithin(selection?.anchorNode) || !isWithin(selection?.focusNode)) return;
        event.clipboardData.setData('text/plain', url);
        event.preventDefault();
      }}
    >
      <span className={`visually-hidden ${styles.whole}`}>{url}</span>
      <span className={styles.host} aria-hidden="true">
        {scheme === 'https://' ? host : scheme + host}
      </span>
      {middle !== '' && (
        <span className={styles.middle} aria-hidden="true">
          <bdi dir="ltr">{middle}</bdi>
        </span>
      )}
      <span className={styles.end} aria-hidden="true">
        {end}
      </span>
    </span>
  );
}
