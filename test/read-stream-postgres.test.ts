/** Readers that stall, go or are overtaken, once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./read-stream.test.ts');
