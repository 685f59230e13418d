-- A team's jobs of one origin, of which there may be few among very many.
create index job_origin on job (team_id, origin, id);
