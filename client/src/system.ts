/** The state of an instance, for operators. */

/** Times are ISO 8601 in UTC with milliseconds. */
export interface System {
  /** Of Flowhook, and of Node. */
  version: string;
  node: string;
  /** Such as `linux x64`. */
  platform: string;
  startedAt: string;
  uptimeSeconds: number;
  /** What this node does: all, api, worker or sender. */
  role: string;
  nodeId: string;
  url: string;
  listening: { host: string; port: number };
  database: {
    kind: 'sqlite' | 'postgres';
    version: string;
    bytes: number;
    /** null on PostgreSQL. */
    walBytes: number | null;
    /** The version of the tables. */
    schema: number;
  };
  /** Of all teams. */
  jobs: { queued: number; running: number; retrying: number; complete: boolean };
  /** Of all teams; circuits are those of this node. */
  deliveries: { waiting: number; oldestWaitingAt: string | null; openCircuits: number; complete: boolean };
  /** The event loop delay of this node in the last whole minute. */
  eventLoop: { p50Ms: number; p99Ms: number; maxMs: number };
  memory: {
    residentBytes: number;
    heapUsedBytes: number;
    heapTotalBytes: number;
    externalBytes: number;
  };
  settings: SystemSetting[];
}

/** What is wrong with an installation, the consequences, and what to do. */
export interface SystemChecks {
  /** Whether no finding is an error. */
  ok: boolean;
  examinedAt: string;
  tookMs: number;
  findings: SystemFinding[];
}

export interface SystemFinding {
  group: 'machine' | 'settings' | 'files' | 'database' | 'backups' | 'network' | 'work';
  /** The name of the check, which never changes. */
  check: string;
  status: 'ok' | 'warning' | 'error' | 'skipped';
  what: string;
  /** The consequence, or why it was not checked; null when all is well. */
  why: string | null;
  /** The next step; null when there is none to take. */
  fix: string | null;
  tookMs: number;
}

export interface SystemSetting {
  name: string;
  /** In the environment. */
  variable: string;
  /** `***` for a secret that is set; null: there is none. */
  value: string | null;
  origin: 'flag' | 'environment' | 'file' | 'default';
  /** Such as `--port` or `flowhook.yaml: port`; null for a default. */
  from: string | null;
  sentence: string;
}
