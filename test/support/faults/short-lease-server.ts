/** A server with short leases: a program for `startServerProcess`, for tests that cannot wait 30 s. */
import { readConfig } from '../../../src/config/config.ts';
import { createLogger } from '../../../src/observe/log.ts';
import { startService } from '../../../src/service/service.ts';

const config = readConfig({});
const log = createLogger({ level: config.logLevel, pretty: false });
const service = await startService(config, log, { leaseMs: Number(process.env.LEASE_MS) });
process.once('SIGTERM', () => service.stop());
process.stdout.write(`flowhook listening on ${service.url}\n`);
