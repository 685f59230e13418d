# Verifies a webhook of Flowhook (Standard Webhooks, v1). Copy `mistake_in` into your receiver.
#
#   WEBHOOK_SECRET=whsec_... WEBHOOK_ID=... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=... ruby verify.rb < body
require "openssl"

TOLERANCE_S = 5 * 60

# Returns why a message cannot be trusted, or nil if it can. The body is the received bytes, unparsed.
# Remember the ids that you have handled (at least for the tolerance), and acknowledge repeated ids.
def mistake_in(id:, timestamp:, signatures:, body:, secret:, now: Time.now.to_i)
  return "a webhook- header is missing" if [id, timestamp, signatures].any? { |value| value.to_s.empty? }
  return "the timestamp is not a number of seconds" unless timestamp.match?(/\A[0-9]{1,12}\z/)
  return "the timestamp is too old or too new" if (now - timestamp.to_i).abs > TOLERANCE_S

  key = secret.delete_prefix("whsec_").unpack1("m")
  signed = "#{id}.#{timestamp}.".b + body.b
  expected = ["v1,", [OpenSSL::HMAC.digest("SHA256", key, signed)].pack("m0")].join
  return nil if signatures.split(" ").any? { |signature| OpenSSL.secure_compare(expected, signature) }

  "no signature matches"
end

if __FILE__ == $PROGRAM_NAME
  mistake = mistake_in(
    id: ENV["WEBHOOK_ID"],
    timestamp: ENV["WEBHOOK_TIMESTAMP"],
    signatures: ENV["WEBHOOK_SIGNATURE"],
    body: $stdin.binmode.read,
    secret: ENV.fetch("WEBHOOK_SECRET")
  )
  puts(mistake.nil? ? "verified" : "refused: #{mistake}")
  exit(mistake.nil?)
end
