-- Attempts are long rows, of which four fit into a page. Without a rowid, the inner pages of the B-tree contained such
-- rows too, and each led to four pages only: the tree was seven levels deep, and a batch of attempts of many webhooks
-- wrote a page for each attempt. With a rowid, attempts are appended.

-- only sqlite
create table new_attempt (
  team_id      text    not null,
  delivery_id  text    not null,
  number       integer not null,
  started_at   integer not null,
  duration_ms  integer not null,
  outcome      text    not null,
  status       integer,
  error        text,
  response     text,
  details      text,
  primary key (team_id, delivery_id, number)
);
insert into new_attempt
  select team_id, delivery_id, number, started_at, duration_ms, outcome, status, error, response, details from attempt;
drop table attempt;
alter table new_attempt rename to attempt;
create index attempt_age on attempt (started_at);
