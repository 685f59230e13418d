-- What single teams may have, where it is not what the instance allows all. A table of its own, for claims look it up
-- and the rows of teams are written again and again.
create table quota (
  team_id  text    not null,
  name     text    not null check (name in ('workflows', 'webhooks', 'records', 'storedBytes', 'runningJobs')),
  most     integer,                              -- null: any number
  primary key (team_id, name)
) without rowid;

-- How long the records of a version are together, in bytes of UTF-8; null where nobody has counted. And by how much the
-- run under way makes that more or less, counted as it is written.
alter table workflow add column staged_bytes integer not null default 0;
alter table version add column bytes integer;
-- Only of current versions. Here, while nobody waits, because a publish would hold up every writer.
update version set bytes = (
  select coalesce(sum(octet_length(body)), 0) from record join workflow on record.workflow = workflow.number
  where workflow.team_id = version.team_id and workflow.id = version.workflow_id
    and added_in <= version.number and (removed_in is null or removed_in > version.number))
where exists (select 1 from workflow
              where workflow.team_id = version.team_id and workflow.id = version.workflow_id
                and workflow.current_version = version.number);
