-- Who is signed in to the dashboard, and the links that sign somebody in once. Neither outlives its key. Small, and
-- found by what somebody shows: as with api_key, the team does not lead their primary keys.

create table session (
  hash        {text}  primary key,  -- SHA-256 of what the cookie holds
  team_id     {text}  not null references team (id),
  key_id      {text}  not null references api_key (id) on delete cascade,
  created_at  {time}  not null,
  expires_at  {time}  not null
);

create index session_key on session (key_id, expires_at);
create index session_expiry on session (expires_at);

create table sign_in_link (
  hash        {text}  primary key,  -- SHA-256 of what the link holds
  team_id     {text}  not null references team (id),
  key_id      {text}  not null references api_key (id) on delete cascade,
  created_at  {time}  not null,
  expires_at  {time}  not null
);

create index sign_in_link_key on sign_in_link (key_id, expires_at);
create index sign_in_link_expiry on sign_in_link (expires_at);
