-- What the records of a run look like, as numbers per field (src/model/quality/profile.ts). A run that publishes a version
-- has one. The newest 500 of a workflow are kept, longer than its versions.
create table profile (
  team_id      {text}     not null,
  workflow_id  {text}     not null,
  version      {integer}  not null,
  job_id       {text}     not null,
  mode         {text}     not null,    -- of the run
  created_at   {time}     not null,
  body         {text}     not null,    -- JSON, at most 64 KiB
  primary key (team_id, workflow_id, version)
) without rowid;  -- only sqlite
);                -- only postgres
