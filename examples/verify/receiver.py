"""A webhook receiver that accepts only requests signed by Flowhook, and handles each event once. It needs only Python 3.9.

    python3 receiver.py --port 9000 --secret whsec_... [--key whpk_...]

`--secret` is the secret of the webhook (`flowhook webhooks secret`); give it twice during a rotation. `--key` is a
public key of your team, from /.well-known/webhook-signing-keys/{teamId}; it works without a shared secret.
"""

import argparse
import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 5 * 60
MAX_BODY_BYTES = 256 * 1024
MAX_SEEN = 100_000


def mistake_in(headers, body, secrets=(), public_keys=(), now=None):
    """Returns why a message cannot be trusted, or None if it can.

    `headers` is a mapping with names in lower case; `body` is the received bytes: JSON that was parsed and serialized
    again does not match the signature.
    """
    message_id = headers.get("webhook-id")
    timestamp = headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if not message_id or not timestamp or not signatures:
        return "a webhook- header is missing"
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return "the timestamp is not a number of seconds"
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_S:
        return "the timestamp is too old or too new"

    signed = f"{message_id}.{timestamp}.".encode() + body
    # There may be several signatures: with the old and the new secret, and with the private key of the team.
    for signature in signatures.split(" "):
        version, _, text = signature.partition(",")
        try:
            given = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if version == "v1" and any(is_hmac(signed, secret, given) for secret in secrets):
            return None
        if version == "v1a" and any(is_ed25519(signed, raw_key(key), given) for key in public_keys):
            return None
    return "no signature matches"


def is_hmac(signed, secret, given):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return hmac.compare_digest(hmac.new(key, signed, hashlib.sha256).digest(), given)


def raw_key(text):
    return base64.b64decode(text.removeprefix("whpk_"))


# Ed25519 as defined by RFC 8032, which Python's standard library lacks. Verification handles no secrets, so plain
# integers are safe. It takes a few milliseconds per message: use the package `cryptography` if you have it.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def is_ed25519(message, key, signature):
    """Whether a signature (64 bytes) of the message was made with the private key of a public key (32 bytes)."""
    if len(key) != 32 or len(signature) != 64:
        return False
    commitment, public = to_point(signature[:32]), to_point(key)
    response = int.from_bytes(signature[32:], "little")
    if commitment is None or public is None or response >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    challenge = int.from_bytes(digest, "little") % ORDER
    return same(times(response, BASE), plus(commitment, times(challenge, public)))


def to_point(data):
    """Decodes a point (X, Y, Z, T) from 32 bytes: y, with the lowest bit of x as the highest bit."""
    number = int.from_bytes(data, "little")
    y, odd = number & (2**255 - 1), number >> 255
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT_OF_MINUS_1 % P
    if x * x % P != square or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = P - x
    return (x, y, 1, x * y % P)


def plus(one, other):
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(factor, point):
    result = NEUTRAL
    while factor > 0:
        if factor & 1:
            result = plus(result, point)
        point = plus(point, point)
        factor >>= 1
    return result


def same(one, other):
    return (one[0] * other[2] - other[0] * one[2]) % P == 0 and (one[1] * other[2] - other[1] * one[2]) % P == 0


BASE = to_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


class SeenIds:
    """The ids of events that were handled.

    An event keeps its id in all deliveries, so this stops replays by others as well as retries of events that were
    handled but not acknowledged. A real receiver stores the ids in its database, in the same transaction as its work.
    """

    def __init__(self):
        self._ids = OrderedDict()
        self._lock = threading.Lock()

    def take(self, message_id):
        """Adds an id, and forgets the oldest one if there are too many. Returns False if the id is already known."""
        with self._lock:
            if message_id in self._ids:
                return False
            self._ids[message_id] = True
            if len(self._ids) > MAX_SEEN:
                self._ids.popitem(last=False)
            return True

    def give_back(self, message_id):
        """Forgets an id whose event could not be handled, so that the next attempt is handled."""
        with self._lock:
            self._ids.pop(message_id, None)


def handle(message_id, body):
    """Your own work goes here. Respond quickly, and do long work afterwards."""
    event = json.loads(body)
    print(f"verified {message_id} {event['type']} {event.get('workflowId', '')}".strip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Receives webhooks and verifies them.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--secret", action="append", default=[])
    parser.add_argument("--key", action="append", default=[])
    options = parser.parse_args()
    seen = SeenIds()

    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self):
            length = self.headers.get("content-length", "")
            if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > MAX_BODY_BYTES:
                self.close_connection = True
                return self.answer(413)
            body = self.rfile.read(int(length))
            mistake = mistake_in(self.headers, body, options.secret, options.key)
            if mistake is not None:
                print(f"refused: {mistake}", flush=True)
                return self.answer(401, mistake)
            message_id = self.headers["webhook-id"]
            if not seen.take(message_id):
                # Acknowledged nevertheless, because otherwise it would be sent again.
                print(f"again {message_id}", flush=True)
                return self.answer(204)
            try:
                handle(message_id, body)
            except Exception as error:
                seen.give_back(message_id)
                print(f"failed {message_id}: {error}", flush=True)
                return self.answer(500)
            self.answer(204)

        def answer(self, status, text=""):
            self.send_response(status)
            if status != 204:
                self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", options.port), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
