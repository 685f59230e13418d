/** Verifying a delivery in several languages: short forms of `examples/verify/`, which are tested against the service. */

export interface Snippet {
  language: string;
  /** One sentence. */
  note: string;
  code: string;
}

export const SNIPPETS: readonly Snippet[] = [
  {
    language: 'TypeScript',
    note: 'With the client, which has no dependencies: npm install flowhook-client.',
    code: `import { NotVerified, verifyWebhook } from 'flowhook-client';

const secrets = [process.env.WEBHOOK_SECRET!]; // whsec_…

export async function POST(request: Request): Promise<Response> {
  try {
    // The body exactly as it came, before any parser.
    const event = await verifyWebhook(await request.text(), request.headers, { secrets });
    console.log(event.type, event.id); // the same id again: you have had it
    return new Response(null, { status: 204 });
  } catch (error) {
    if (error instanceof NotVerified) return new Response(error.message, { status: 401 });
    throw error;
  }
}
`,
  },
  {
    language: 'Python',
    note: 'With the standard library alone.',
    code: `import base64, hashlib, hmac, os, time

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def is_genuine(headers, body: bytes) -> bool:
    """headers: a mapping that finds names in lower case; body: the bytes as they came."""
    message_id = headers["webhook-id"]
    timestamp = headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    return any(
        hmac.compare_digest(signature, f"v1,{expected}")
        for signature in headers["webhook-signature"].split(" ")
    )
`,
  },
  {
    language: 'Go',
    note: 'With the standard library alone.',
    code: `func isGenuine(header http.Header, body []byte, secret string) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if age := time.Now().Unix() - sent; err != nil || age > 300 || age < -300 {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(signature), expected) {
			return true
		}
	}
	return false
}
`,
  },
  {
    language: 'Shell',
    note: 'For a look by hand, with openssl: the body on standard input.',
    code: `# WEBHOOK_SECRET=whsec_… WEBHOOK_ID=… WEBHOOK_TIMESTAMP=… sh verify.sh < body
key=$(printf '%s' "\${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
{ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP"; cat; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary |
  openssl base64 -A
# webhook-signature must hold v1, and what this prints
`,
  },
];
