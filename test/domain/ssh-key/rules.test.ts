import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'

const string = (bytes: Buffer | string): Buffer => {
  const body = Buffer.from(bytes)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([length, body])
}
const keyOf = (type: string, ...parts: (Buffer | string)[]) =>
  `${type} ${Buffer.concat([string(type), ...parts.map(string)]).toString('base64')}`
function rsa(bits: number): string {
  const { n = '', e = '' } = generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' })
  return keyOf('ssh-rsa', Buffer.from(e, 'base64url'), Buffer.concat([Buffer.of(0), Buffer.from(n, 'base64url')]))
}
const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu'
/** The base64 of the bytes with one more after them. */
const withByteAfter = (base64: string): string =>
  Buffer.concat([Buffer.from(base64, 'base64'), Buffer.of(0)]).toString('base64')

describe('accepted', () => {
  test.each([
    ['ed25519', ED25519],
    ['rsa of 2048 bits', rsa(2048)],
    ['ecdsa', keyOf('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(65, 4))],
    ['a security key', keyOf('sk-ssh-ed25519@openssh.com', Buffer.alloc(32), 'ssh:')],
    ['an ecdsa security key', keyOf('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', Buffer.alloc(65, 4), 'ssh:')],
  ])('%s', (_what, text) => {
    expect(parsePublicKey(text)).toMatchObject({
      text,
      fingerprint: expect.stringMatching(/^SHA256:[A-Za-z0-9+/]{43}$/),
    })
  })

  test('a comment stays, spaces and line ends around it go; the fingerprint is of the key alone', () => {
    const plain = parsePublicKey(ED25519)
    const commented = parsePublicKey(`  ${ED25519}   ada at  home\n`)
    expect(commented).toMatchObject({ text: `${ED25519} ada at home` })
    expect(
      typeof plain === 'object' && typeof commented === 'object' && plain.fingerprint === commented.fingerprint,
    ).toBe(true)
  })
})

test.each([
  ['nothing', ''],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----'],
  ['dsa', keyOf('ssh-dss', 'x')],
  ['a type without a key', 'ssh-ed25519'],
  ['no base64', 'ssh-ed25519 %%%%'],
  ['a key that ends early', ED25519.slice(0, -8)],
  ['bytes after the key', `ssh-ed25519 ${withByteAfter(ED25519.split(' ')[1] ?? '')}`],
  ['another type inside', ED25519.replace('ssh-ed25519', 'ssh-rsa')],
  ['rsa of 1024 bits', rsa(1024)],
  ['two lines', `${ED25519}\n${ED25519}`],
  ['options before the type', `command="x" ${ED25519}`],
  ['another curve inside', keyOf('ecdsa-sha2-nistp256', 'nistp521', Buffer.alloc(65, 4))],
])('refused: %s', (_what, text) => {
  expect(parsePublicKey(text)).toEqual(expect.any(String))
})

describe('RSA keys', () => {
  /** One whose modulus has so many bits. */
  const modulus = (bits: number) => {
    const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff)
    bytes[0] = 0xff >> (bytes.length * 8 - bits)
    return parsePublicKey(keyOf('ssh-rsa', Buffer.of(1, 0, 1), Buffer.concat([Buffer.of(0), bytes])))
  }
  test.each([2_048, 2_049, 4_096, 16_384])('of %i bits are accepted', (bits) =>
    expect(modulus(bits)).toMatchObject({ fingerprint: expect.any(String) }),
  )
  test('are refused below and above, with their size', () => {
    expect(modulus(2_047)).toBe('is an RSA key of 2047 bits; at least 2048 are needed')
    expect(modulus(1)).toBe('is an RSA key of 1 bits; at least 2048 are needed')
    expect(modulus(16_385)).toBe('is an RSA key of more than 16384 bits')
    expect(parsePublicKey(keyOf('ssh-rsa', Buffer.of(1), Buffer.alloc(0)))).toBe(
      'is an RSA key of 0 bits; at least 2048 are needed',
    )
    expect(parsePublicKey(keyOf('ssh-rsa', Buffer.of(1), Buffer.alloc(9)))).toMatch(/^is an RSA key of 0 bits/)
  })
})

test.each([
  ['ssh-ed25519 of 31 bytes', keyOf('ssh-ed25519', Buffer.alloc(31)), 'does not hold an ed25519 key'],
  [
    'a security key of 33 bytes',
    keyOf('sk-ssh-ed25519@openssh.com', Buffer.alloc(33), 'ssh:'),
    'does not hold an ed25519 key',
  ],
  ['a part too many', keyOf('ssh-ed25519', Buffer.alloc(32), 'x'), 'does not hold a ssh-ed25519 key'],
  ['a part too few', keyOf('ssh-rsa', 'x'), 'does not hold a ssh-rsa key'],
  ['a curve without a name', keyOf('ecdsa-sha2-nistp384', 'nistp256', 'x'), 'does not hold a ecdsa-sha2-nistp384 key'],
  [
    'a length that is cut off',
    `ssh-ed25519 ${Buffer.of(0, 0, 0).toString('base64')}`,
    'does not hold a ssh-ed25519 key',
  ],
  [
    'a length beyond the end',
    `ssh-ed25519 ${Buffer.of(0, 0, 0, 9, 1).toString('base64')}`,
    'does not hold a ssh-ed25519 key',
  ],
  ['no bytes', 'ssh-ed25519 ', 'does not hold base64 after the type'],
  ['base64 with something behind it', `${ED25519}*`, 'does not hold base64 after the type'],
])('refused for its reason: %s', (_what, text, reason) => expect(parsePublicKey(text)).toBe(reason))

test('padding may be left out', () => {
  const key = keyOf('ecdsa-sha2-nistp521', 'nistp521', Buffer.alloc(133, 4))
  expect(key).toMatch(/=$/)
  expect(parsePublicKey(key.replace(/=+$/, ''))).toEqual(parsePublicKey(key))
})

test('the fingerprint is what the usual tool prints', () => {
  expect(parsePublicKey(ED25519)).toMatchObject({ fingerprint: 'SHA256:lI1zim2TOA54QhUGYANxDW6h0ERcDWoyWS1QtBKvIvM' })
})
