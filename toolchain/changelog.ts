/** The sections of CHANGELOG.md: `## Unreleased`, then a section for each release, newest first. */

const UNRELEASED = '## Unreleased';

export interface Section {
  version: string;
  /** ISO date of the release. */
  date: string;
  /** The Markdown below the heading, trimmed. */
  text: string;
}

/** Returns the releases, newest first. Headings of another form end a section, but are not one. */
export function releasesIn(changelog: string): Section[] {
  return changelog.split(/^(?=## )/m).flatMap((part) => {
    const heading = /^## (\d+\.\d+\.\d+\S*) – (\d{4}-\d\d-\d\d)\n/.exec(part);
    const [line = '', version = '', date = ''] = heading ?? [];
    return heading === null ? [] : [{ version, date, text: part.slice(line.length).trim() }];
  });
}

/** Returns the Markdown of the changes that no release contains; undefined if there is no section for them. */
export function unreleasedIn(changelog: string): string | undefined {
  return new RegExp(`^${UNRELEASED}\\n(.*?)(?=^## |$(?![\\s\\S]))`, 'ms').exec(changelog)?.[1]?.trim();
}

/** Puts the unreleased changes into a section of their own. */
export function cut(changelog: string, version: string, date: string): string {
  return changelog.replace(UNRELEASED, () => `${UNRELEASED}\n\n## ${version} – ${date}`);
}

/**
 * Returns the notes of a release, for a page outside of the repository.
 *
 * @param base the URL that relative links begin with, ending in a slash
 */
export function notesOf(section: Section, base: string): string {
  return section.text.replaceAll(/\]\((?![a-z]+:|#)([^)]+)\)/g, (_, path: string) => `](${base}${path})`);
}
