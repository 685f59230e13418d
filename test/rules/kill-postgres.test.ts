/** `kill -9` of a service that decides what its webhooks receive, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./kill.test.ts');
