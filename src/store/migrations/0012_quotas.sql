-- What single teams may have, where it is not what the instance allows all. A table of its own, for claims look it up
-- and the rows of teams are written again and again.
create table quota (
  team_id  {old_text}  not null,
  name     {old_text}  not null check (name in ('workflows', 'webhooks', 'records', 'storedBytes', 'runningJobs')),
  most     {bigint},                            -- null: any number
  primary key (team_id, name)
) without rowid;  -- only sqlite
);                -- only postgres

-- only postgres
-- Before anything is locked: nodes of the version before go on meanwhile.
create table counted_bytes as
select team_id, id, current_version, erasures,
       (select coalesce(sum(octet_length(body)), 0) from record
        where record.team_id = workflow.team_id and record.workflow_id = workflow.id
          and added_in <= current_version and coalesce(removed_in, current_version + 1) > current_version) as bytes
from workflow where current_version > 0;
-- both

-- How long the records of a version are together, in bytes of UTF-8; null where nobody has counted. And by how much the
-- run under way makes that more or less, counted as it is written.
alter table workflow add column staged_bytes {bigint} not null default 0;
alter table version add column bytes {bigint};

-- only sqlite
-- Only of current versions. Here, while nobody waits, because a publish would hold up every writer.
update version set bytes = (
  select coalesce(sum(octet_length(body)), 0) from record join workflow on record.workflow = workflow.number
  where workflow.team_id = version.team_id and workflow.id = version.workflow_id
    and added_in <= version.number and (removed_in is null or removed_in > version.number))
where exists (select 1 from workflow
              where workflow.team_id = version.team_id and workflow.id = version.workflow_id
                and workflow.current_version = version.number);

-- only postgres
-- Only of current versions. Versions that nodes of the previous version publish from now on stay uncounted.
update version set bytes = counted_bytes.bytes
from counted_bytes
join workflow on workflow.team_id = counted_bytes.team_id and workflow.id = counted_bytes.id
  and workflow.current_version = counted_bytes.current_version and workflow.erasures = counted_bytes.erasures
where version.team_id = counted_bytes.team_id and version.workflow_id = counted_bytes.id
  and version.number = counted_bytes.current_version;
drop table counted_bytes;
