/** Encryption at rest: turns short secrets into text that only holders of the key can decrypt. */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';

export interface Sealer {
  /** Encrypts a text. The result can be decrypted only with the same key and context. */
  seal(plain: string | Uint8Array, context: string): string;
  /**
   * Decrypts a sealed text.
   *
   * @throws Error with a sentence if the key or the context differs, or the text was changed
   */
  open(sealed: string, context: string): Buffer;
  /**
   * Derives a key of 32 bytes for `mac` from the encryption key and a context. The derived key cannot decrypt sealed
   * values.
   */
  macKey(context: string): Buffer;
  /** 16 hexadecimal digits that identify the encryption key without revealing it. */
  fingerprint: string;
}

const VERSION = 'sealed1';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals with AES-256-GCM (NIST SP 800-38D). A sealed text is `sealed1.<fingerprint of the key>.<base64url of nonce, tag
 * and ciphertext>`. The context, such as `webhook-secret/team_1`, is authenticated, so that a sealed value cannot be
 * moved to a different row.
 *
 * @param key 32 bytes
 */
export function createSealer(key: Uint8Array): Sealer {
  if (key.byteLength !== 32) {
    throw new Error(`An encryption key must be 32 bytes long, found ${key.byteLength}`);
  }
  const secret = Buffer.from(key);
  const fingerprint = createHash('sha256')
    .update('flowhook encryption key fingerprint 1\0')
    .update(secret)
    .digest('hex')
    .slice(0, 16);

  return {
    fingerprint,
    macKey: (context) => Buffer.from(hkdfSync('sha256', secret, '', `flowhook mac 1\0${context}`, 32)),
    seal(plain, context) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', secret, iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(associatedData(context));
      const text = typeof plain === 'string' ? Buffer.from(plain, 'utf8') : plain;
      const body = Buffer.concat([cipher.update(text), cipher.final()]);
      const packed = Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url');
      return `${VERSION}.${fingerprint}.${packed}`;
    },
    open(sealed, context) {
      const [version, sealedBy, packed = '', ...rest] = sealed.split('.');
      const bytes = Buffer.from(packed, 'base64url');
      if (version !== VERSION || rest.length > 0 || bytes.length < IV_BYTES + TAG_BYTES) {
        throw new Error('A sealed value has a format that this version of Flowhook does not support');
      }
      if (sealedBy !== fingerprint) {
        throw new Error(
          `A value was sealed with another encryption key (fingerprint ${sealedBy}; the current key has ${fingerprint})`,
        );
      }
      const iv = bytes.subarray(0, IV_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', secret, iv, { authTagLength: TAG_BYTES });
      decipher.setAAD(associatedData(context));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
      } catch (error) {
        throw new Error('A sealed value was changed, or was sealed for a different context', {
          cause: error,
        });
      }
    },
  };
}

/**
 * A keyed hash of a text (HMAC-SHA256, in hexadecimal). Only holders of the key can check whether a hash belongs to a
 * text.
 */
export function mac(key: Uint8Array, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex');
}

function associatedData(context: string): Buffer {
  return Buffer.from(`${VERSION}\0${context}`, 'utf8');
}
