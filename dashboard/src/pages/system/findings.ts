/** Findings in the order in which one looks at them: what needs attention first, and the rest by what it is about. */
import type { SystemFinding } from 'flowhook-client';

export interface SortedFindings {
  /** Errors, then warnings. */
  troubles: SystemFinding[];
  fine: SystemFinding[];
  skipped: SystemFinding[];
}

export function sortFindings(findings: readonly SystemFinding[]): SortedFindings {
  const of = (status: SystemFinding['status']) => findings.filter((finding) => finding.status === status);
  return { troubles: [...of('error'), ...of('warning')], fine: of('ok'), skipped: of('skipped') };
}

/** `disk-space-data` → `Disk space data`. */
export function checkTitle(check: string): string {
  const words = check.replaceAll('-', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
