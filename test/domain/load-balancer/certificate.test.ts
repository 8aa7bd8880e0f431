import 'reflect-metadata'
import { generateKeyPairSync, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { beforeAll, describe, expect, test } from 'vitest'
import { CHAIN_MAXIMUM, checkCertificate, PEM_BYTES_MAXIMUM } from '../../../domain/load-balancer/certificate.ts'
import { type Certificate, makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const NOW = new Date('2026-06-01T00:00:00Z')
const random = systemRandom
const make = (options: Partial<Parameters<typeof makeCertificate>[0]> = {}) =>
  makeCertificate({ commonName: 'example', days: 30, now: NOW, random, ...options })
const check = ({ certificate, key }: Certificate, now = NOW) => checkCertificate({ certificate, privateKey: key }, now)

let root: Certificate
let leaf: Certificate
let other: Certificate
beforeAll(async () => {
  root = await make({ commonName: 'root', isAuthority: true })
  leaf = await make({ hosts: ['www.example', '*.example'], authority: root })
  other = await make()
})

/** Signed by its own RSA key. */
async function rsa(bits: number, hash = 'SHA-256'): Promise<Certificate> {
  x509.cryptoProvider.set(webcrypto)
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash, publicExponent: new Uint8Array([1, 0, 1]), modulusLength: bits }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: '01',
    subject: 'CN=rsa',
    issuer: hash === 'SHA-1' ? 'CN=somebody' : 'CN=rsa',
    notBefore: NOW,
    notAfter: new Date('2027-06-01T00:00:00Z'),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
  })
  const exported = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  return {
    certificate: certificate.toString('pem'),
    key: `-----BEGIN PRIVATE KEY-----\n${exported}\n-----END PRIVATE KEY-----\n`,
  }
}

test('a chain with its key is read, and what surrounds it is left out', () => {
  const checked = check({ ...leaf, certificate: `subject=www\n${leaf.certificate}\nissuer=root\n${root.certificate}` })
  expect(checked).toMatchObject({
    dnsNames: ['www.example', '*.example'],
    notAfter: new Date('2026-07-01T00:00:00Z'),
    fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
  })
  if ('detail' in checked) throw new Error(checked.detail)
  expect(checked.certificate).not.toContain('subject=')
  expect(checked.certificate.match(/BEGIN/g)).toHaveLength(2)
  expect(checked.privateKey).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
})

test('RSA of 2048 bits will do, and the parameters before a key of a curve', async () => {
  expect(check(await rsa(2_048))).not.toHaveProperty('detail')
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  expect(check({ ...leaf, key: parameters + leaf.key })).not.toHaveProperty('detail')
})

describe('what the proxy would refuse', () => {
  test.each([
    ['no PEM', () => ({ ...leaf, certificate: 'certificate' }), /must be certificates in PEM/],
    ['a key as the certificate', () => ({ ...leaf, certificate: leaf.key }), /must be certificates in PEM/],
    [
      'something else in PEM',
      () => ({ ...leaf, certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' }),
      /no certificate/,
    ],
    [
      'a chain in the wrong order',
      () => ({ ...leaf, certificate: root.certificate + leaf.certificate }),
      /did not sign/,
    ],
    ['a chain of strangers', () => ({ ...leaf, certificate: leaf.certificate + other.certificate }), /did not sign/],
    ['a bomb', () => ({ ...leaf, certificate: 'A'.repeat(PEM_BYTES_MAXIMUM + 1) }), /at most 32768/],
    [
      'too many certificates',
      () => ({ ...leaf, certificate: leaf.certificate.repeat(CHAIN_MAXIMUM + 1) }),
      /at most 10 certificates/,
    ],
  ])('%s', (_what, certificate, detail) =>
    expect(check(certificate())).toEqual({ field: 'certificate', detail: expect.stringMatching(detail) }),
  )

  test.each([
    ['no key', () => '', /one private key/],
    ['two keys', () => leaf.key + leaf.key, /one private key/],
    ['the key of another', () => other.key, /not the key of the first/],
    ['a bomb', () => 'A'.repeat(PEM_BYTES_MAXIMUM + 1), /at most 32768/],
    ['what is no key', () => '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----', /no private key that can/],
    [
      'an encrypted one',
      () =>
        generateKeyPairSync('ec', {
          namedCurve: 'P-256',
          publicKeyEncoding: { type: 'spki', format: 'pem' },
          privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
        }).privateKey,
      /must not be encrypted/,
    ],
  ])('%s', (_what, key, detail) => {
    const fault = check({ ...leaf, key: key() })
    expect(fault).toEqual({ field: 'private_key', detail: expect.stringMatching(detail) })
  })

  test('a short RSA key, and a digest that is not safe', async () => {
    expect(check(await rsa(1_024))).toMatchObject({
      field: 'certificate',
      detail: expect.stringMatching(/2048 to 8192/),
    })
    expect(check(await rsa(2_048, 'SHA-1'))).toMatchObject({
      field: 'certificate',
      detail: expect.stringMatching(/digest/),
    })
  })

  test('one that has expired', () =>
    expect(check(leaf, new Date('2026-07-02T00:00:00Z'))).toEqual({ field: 'certificate', detail: 'has expired' }))
})
