-- For pages of a team's keys, and their number.
create index api_key_team on api_key (team_id, id);
