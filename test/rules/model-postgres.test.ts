/** Random histories on PostgreSQL, compared with a model. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./model.test.ts');
