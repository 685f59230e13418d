/** Groups the findings of the checks: those that need attention first. */
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
