-- Webhooks that send mail: when the recipient confirmed the address (src/webhooks/mail/verification.ts).

-- both
alter table webhook add column verified_at {time};          -- null for other webhooks, and until it is confirmed
alter table webhook add column verification_mails {text};   -- JSON: times of the verification mails of the last day
create index webhook_mail on webhook (team_id, url) where substr(url, 1, 7) = 'mailto:';
