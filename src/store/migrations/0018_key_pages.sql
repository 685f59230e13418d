-- Pages of a team's keys, and how many it has.
create index api_key_team on api_key (team_id, id);
