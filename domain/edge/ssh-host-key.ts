/** Keys by which SSH clients know a server, in the forms of OpenSSH. */
import { createPrivateKey, createPublicKey } from 'node:crypto'

export const HOST_KEY_SEED_BYTES = 32
const TYPE = 'ssh-ed25519'
/** PKCS #8 of an ed25519 key, up to its 32 bytes (RFC 8410). */
const PKCS8_START = Buffer.from('302e020100300506032b657004220420', 'hex')
const BLOCK_BYTES = 8
const LINE_CHARACTERS = 70

export interface HostKey {
  /** Type and base64, as in known_hosts. */
  readonly publicKey: string
  /** In the format of sshd's key file. */
  readonly privateKey: string
}

/** The ed25519 key of these secret bytes. */
export function hostKeyOf(seed: Uint8Array): HostKey {
  if (seed.length !== HOST_KEY_SEED_BYTES) throw new TypeError(`a key is made from ${HOST_KEY_SEED_BYTES} bytes`)
  const secret = createPrivateKey({ key: Buffer.concat([PKCS8_START, seed]), format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(secret).export({ format: 'jwk' })
  const own = Buffer.from(x, 'base64url')
  const blob = Buffer.concat([text(TYPE), text(own)])
  return { publicKey: `${TYPE} ${blob.toString('base64')}`, privateKey: fileOf(blob, own, seed) }
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const text = (content: string | Uint8Array): Buffer => {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** openssh-key-v1, not encrypted: the two check numbers, which detect a wrong passphrase, may be any equal ones. */
function fileOf(blob: Buffer, own: Buffer, seed: Uint8Array): string {
  const keys = Buffer.concat([
    uint32(0),
    uint32(0),
    text(TYPE),
    text(own),
    text(Buffer.concat([seed, own])),
    text(''), // its comment
  ])
  const padding = Uint8Array.from(
    { length: (BLOCK_BYTES - (keys.length % BLOCK_BYTES)) % BLOCK_BYTES },
    (_, at) => at + 1,
  )
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    text('none'), // cipher
    text('none'), // key derivation
    text(''),
    uint32(1), // keys
    text(blob),
    text(Buffer.concat([keys, padding])),
  ])
  const lines = file.toString('base64').match(new RegExp(`.{1,${LINE_CHARACTERS}}`, 'g')) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}
