/** Searches every column of a PostgreSQL database for texts. */
import pg from 'pg';

/** The tables with a visible row that contains one of the texts, ignoring case. */
export async function tablesWith(url: string, texts: readonly string[]): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string; columns: string[] }>(
      `select quote_ident(table_name) as name,
         array_agg(case data_type when 'bytea' then format('encode(%I, ''escape'')', column_name)
                                  else format('%I::text', column_name) end) as columns
       from information_schema.columns where table_schema = 'public' group by table_name order by table_name`,
    );
    const found: string[] = [];
    for (const { name, columns } of rows) {
      const text = `lower(concat_ws(' ', ${columns.join(', ')}))`;
      const { rowCount } = await client.query(
        `select 1 from ${name} where exists (
           select 1 from unnest($1::text[]) as wanted where strpos(${text}, lower(wanted)) > 0) limit 1`,
        [texts],
      );
      if (rowCount !== 0) found.push(name);
    }
    return found;
  } finally {
    await client.end();
  }
}
