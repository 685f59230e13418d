/** A setting as it holds: its value, and where that comes from. */

export const SETTING_ORIGINS = ['flag', 'environment', 'file', 'default'] as const;

export interface EffectiveSetting {
  /** In `flowhook.yaml`. */
  name: string;
  /** In the environment. */
  variable: string;
  /** What holds, defaults that follow from other settings included; `***` for a secret; null: there is none. */
  value: string | null;
  origin: (typeof SETTING_ORIGINS)[number];
  /** The place as the user would name it: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`; null for a default. */
  from: string | null;
  /** What it is for. */
  sentence: string;
}
