-- Records that did not meet an expectation, set aside with the reasons (src/model/quality/quarantine.ts). A row is in the
-- quarantine as of run Q if `added_in <= Q and (removed_in is null or removed_in > Q)`, like a record in a version.
create table quarantined (
  team_id      {text}     not null,
  workflow_id  {text}     not null,
  added_in     {integer}  not null,    -- a value of workflow.quarantine_run
  position     {integer}  not null,    -- of the record in its run, from 1
  removed_in   {integer},
  record_key   {text}     not null,    -- the id, or its digest
  job_id       {text}     not null,
  bytes        {integer}  not null,    -- of the body
  created_at   {time}     not null,
  record_id    {text}     not null,
  reasons      {text}     not null,    -- JSON
  body         {text}     not null,    -- JSON
  primary key (team_id, workflow_id, added_in, position)
) without rowid;  -- only sqlite
);                -- only postgres
create index quarantined_record on quarantined (team_id, workflow_id, record_key);
create index quarantined_removed on quarantined (team_id, workflow_id, removed_in) where removed_in is not null;

alter table workflow add column quarantine_run {integer} not null default 0;      -- runs that changed the quarantine
alter table workflow add column staged_quarantined {integer} not null default 0;  -- rows that the running job has added
alter table workflow add column staged_released {integer} not null default 0;     -- rows that the running job has closed

alter table job add column quarantined {integer};
