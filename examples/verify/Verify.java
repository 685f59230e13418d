import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies a webhook of Flowhook (Standard Webhooks, v1). Copy mistakeIn into your receiver. Java 11 or later.
 *
 * <pre>WEBHOOK_SECRET=whsec_… WEBHOOK_ID=… WEBHOOK_TIMESTAMP=… WEBHOOK_SIGNATURE=… java Verify.java &lt; body</pre>
 */
public class Verify {
    static final long TOLERANCE_S = 5 * 60;

    /**
     * Returns why a message cannot be trusted, or null if it can. The body is the received bytes, unparsed.
     * Remember the ids that you have handled (at least for the tolerance), and acknowledge repeated ids.
     */
    static String mistakeIn(String id, String timestamp, String signatures, byte[] body, String secret, Instant now)
            throws Exception {
        if (id.isEmpty() || timestamp.isEmpty() || signatures.isEmpty()) return "a webhook- header is missing";
        if (!timestamp.matches("[0-9]{1,12}")) return "the timestamp is not a number of seconds";
        if (Math.abs(now.getEpochSecond() - Long.parseLong(timestamp)) > TOLERANCE_S) {
            return "the timestamp is too old or too new";
        }
        byte[] key = Base64.getDecoder().decode(secret.startsWith("whsec_") ? secret.substring(6) : secret);
        ByteArrayOutputStream signed = new ByteArrayOutputStream();
        signed.write((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        signed.write(body);
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(signed.toByteArray()));
        for (String signature : signatures.split(" ")) {
            if (MessageDigest.isEqual(bytes(expected), bytes(signature))) return null;
        }
        return "no signature matches";
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> env = System.getenv();
        String mistake = mistakeIn(
                env.getOrDefault("WEBHOOK_ID", ""),
                env.getOrDefault("WEBHOOK_TIMESTAMP", ""),
                env.getOrDefault("WEBHOOK_SIGNATURE", ""),
                System.in.readAllBytes(),
                env.getOrDefault("WEBHOOK_SECRET", ""),
                Instant.now());
        System.out.println(mistake == null ? "verified" : "refused: " + mistake);
        System.exit(mistake == null ? 0 : 1);
    }
}
