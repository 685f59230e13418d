-- What a run did not meet of the expectations of its workflow: JSON of a list (src/model/quality/expect.ts).
alter table job add column findings {text};
