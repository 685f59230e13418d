<?php
// Verifies a webhook of Flowhook (Standard Webhooks, v1). Copy mistakeIn into your receiver.
//
//   WEBHOOK_SECRET=whsec_... WEBHOOK_ID=... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=... php verify.php < body
declare(strict_types=1);

const TOLERANCE_S = 5 * 60;

/**
 * Returns why a message cannot be trusted, or null if it can. The body is the received bytes: php://input.
 * Remember the ids that you have handled (at least for the tolerance), and acknowledge repeated ids.
 */
function mistakeIn(string $id, string $timestamp, string $signatures, string $body, string $secret, int $now): ?string
{
    if ($id === '' || $timestamp === '' || $signatures === '') {
        return 'a webhook- header is missing';
    }
    if (preg_match('/\A[0-9]{1,12}\z/', $timestamp) !== 1) {
        return 'the timestamp is not a number of seconds';
    }
    if (abs($now - (int) $timestamp) > TOLERANCE_S) {
        return 'the timestamp is too old or too new';
    }
    $key = base64_decode(str_starts_with($secret, 'whsec_') ? substr($secret, 6) : $secret, true);
    if ($key === false) {
        return 'the secret is not base64';
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return null;
        }
    }
    return 'no signature matches';
}

if (PHP_SAPI === 'cli' && realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    $mistake = mistakeIn(
        (string) getenv('WEBHOOK_ID'),
        (string) getenv('WEBHOOK_TIMESTAMP'),
        (string) getenv('WEBHOOK_SIGNATURE'),
        (string) file_get_contents('php://stdin'),
        (string) getenv('WEBHOOK_SECRET'),
        time(),
    );
    echo $mistake === null ? "verified\n" : "refused: $mistake\n";
    exit($mistake === null ? 0 : 1);
}
