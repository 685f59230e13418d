-- What people write about a webhook, besides its name.
alter table webhook add column description {text};
alter table webhook add column labels {text} not null default '[]';   -- JSON list of texts
