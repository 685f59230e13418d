/** The icons of the dashboard: outlines on a 24 × 24 grid, in the color of the surrounding text. */

const PATHS = {
  api: 'M8 8l-4 4 4 4M16 8l4 4-4 4M13.5 5l-3 14',
  arrowDown: 'M12 5v14M6 13l6 6 6-6',
  arrowUp: 'M12 19V5M6 11l6-6 6 6',
  ban: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM5.7 5.7l12.6 12.6',
  bell: 'M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  chevronRight: 'M9 6l6 6-6 6',
  chevronDown: 'M6 9l6 6 6-6',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 2',
  columns: 'M4 5h16v14H4zM10 5v14M15 5v14',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  cross: 'M6 6l12 12M18 6L6 18',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  help: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17h.01',
  home: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z',
  inspector: 'M4 5h16v10H4zM8 20h8M12 15v5M8 10h3l1-2 2 4 1-2h1',
  key: 'M15 3a6 6 0 0 0-5.6 8.1L3 17.5V21h3.5v-2.5H9V16h2l1.4-1.4A6 6 0 1 0 15 3zM16 8h.01',
  list: 'M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01',
  menu: 'M4 7h16M4 12h16M4 17h16',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4.5v15l12-7.5z',
  plus: 'M12 5v14M5 12h14',
  refresh: 'M20 11a8 8 0 0 0-14.9-3L3 10M3 4v6h6M4 13a8 8 0 0 0 14.9 3L21 14M21 20v-6h-6',
  search: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L21 21',
  send: 'M21 3L10 14M21 3l-7 18-4-7-7-4z',
  signOut: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M19.1 4.9l-1.8 1.8M6.7 17.3l-1.8 1.8',
  system: 'M4 4h16v7H4zM4 13h16v7H4zM7.5 7.5h.01M7.5 16.5h.01',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  warning: 'M12 4L2.5 20h19zM12 10v4M12 17h.01',
  webhook:
    'M12 9a3 3 0 1 0-2.6-4.5M12 9l-4 7M6 13a3.5 3.5 0 1 0 3 5.500h7M18 13a3 3 0 1 1-1.500 5.600M14.500 6.500L18 13',
  workflow: 'M4 4h6v6H4zM14 14h6v6h-6zM7 10v4a3 3 0 0 0 3 3h4',
  wrap: 'M4 6h16M4 12h13a3 3 0 0 1 0 6h-4M4 18h5M15 15.500L12.500 18l2.500 2.500',
} as const;

export type IconName = keyof typeof PATHS;

/** Icons are decorative: the meaning is in a word beside the icon, or in the label of its button. */
export function Icon(props: { name: IconName; size?: number; color?: string | undefined }) {
  const { name, size = 16, color } = props;
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke={color ?? 'currentColor'}
      strokeWidth={2}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      style={{ flex: 'none' }}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
