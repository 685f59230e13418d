/** Mantine's theme with one accent color, a denser layout, and contrast that meets WCAG AA in both themes. */
import { type CSSVariablesResolver, createTheme, localStorageColorSchemeManager } from '@mantine/core';

const SMALL =
  'Button,TextInput,Textarea,NumberInput,Select,MultiSelect,Checkbox,Switch,SegmentedControl'.split(',');

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 7 },
  defaultRadius: 'sm',
  cursorType: 'pointer',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    sizes: {
      h1: { fontSize: '1.25rem', lineHeight: '1.4' },
      h2: { fontSize: '1rem', lineHeight: '1.4' },
      h3: { fontSize: '0.875rem', lineHeight: '1.4' },
    },
  },
  respectReducedMotion: true,
  components: {
    ...Object.fromEntries(SMALL.map((name) => [name, { defaultProps: { size: 'xs' } }])),
    PasswordInput: { defaultProps: { size: 'sm' } },
    Table: { defaultProps: { verticalSpacing: 6 } },
    Tooltip: {
      defaultProps: { openDelay: 300, withArrow: true, events: { hover: true, focus: true, touch: true } },
    },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray', size: 'md' } },
    Paper: { defaultProps: { withBorder: true, p: 'md' } },
    // A dialog's header is not the page's banner, and its close button needs a name.
    ModalHeader: { defaultProps: { role: 'presentation' } },
    DrawerHeader: { defaultProps: { role: 'presentation' } },
    // Dialogs and drawers are made of Paper, whose padding would add to their own.
    ModalContent: { defaultProps: { p: 0 } },
    DrawerContent: { defaultProps: { p: 0 } },
    ModalCloseButton: { defaultProps: { 'aria-label': 'Close' } },
    DrawerCloseButton: { defaultProps: { 'aria-label': 'Close' } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    // Focuses the first item on opening, as desktop menus do.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
  },
});

/** Colors for small text on white and on light tints, for which Mantine's own colors are too pale. */
const INKS = {
  red: '#c92a2a',
  orange: '#8a3d00',
  yellow: '#7a4a00',
  lime: '#3f6212',
  green: '#1f6a30',
  teal: '#08644a',
  cyan: '#0b5a6b',
  blue: '#1862a8',
  gray: '#495057',
};

/** Text colors with a contrast of at least 4.5:1 in both themes, including dimmed text and errors. */
export const cssVariables: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': colors.gray[7],
    '--mantine-color-placeholder': colors.gray[7],
    '--mantine-color-error': colors.red[9],
    ...Object.fromEntries(
      Object.entries(INKS).flatMap(([name, ink]) => [
        [`--mantine-color-${name}-text`, ink],
        [`--mantine-color-${name}-light-color`, ink],
      ]),
    ),
  },
  dark: {
    '--mantine-color-dimmed': colors.dark[1],
    '--mantine-color-placeholder': colors.dark[1],
    '--mantine-color-error': colors.red[4],
  },
});

/** `public/theme.js` reads the same key before the first paint. */
export const colorScheme = localStorageColorSchemeManager({ key: 'flowhook-color-scheme' });
