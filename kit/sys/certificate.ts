/** X.509 certificates that processes create for themselves: signed by their own key, or by an authority's. The owners
 *  store them. */
import 'reflect-metadata'
import { createPrivateKey, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'
import { byTheMachine } from './clock.ts'
import type { Random } from './random.ts'

/** PEM. */
export interface Certificate {
  readonly certificate: string
  readonly key: string
}

export interface CertificateOptions {
  readonly commonName: string
  /** Groups, for a client. */
  readonly organization?: string
  /** Valid from a day ago, since clocks differ. */
  readonly days: number
  /** DNS names and addresses of a server; none for a client. */
  readonly hosts?: readonly string[]
  /** Whether it identifies a client. */
  readonly isClient?: boolean
  /** Whether it may sign others. */
  readonly isAuthority?: boolean
  /** Without it, the certificate's own key signs. */
  readonly authority?: Certificate
  readonly now: Date
  readonly random: Random
}

export const DAY_MILLISECONDS = 86_400_000
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const SERIAL_BYTES = 12

/** A new key and the certificate for it. */
export async function makeCertificate({
  commonName,
  organization,
  days,
  hosts = [],
  isClient = false,
  isAuthority = false,
  authority,
  now,
  random,
}: CertificateOptions): Promise<Certificate> {
  x509.cryptoProvider.set(webcrypto)
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const issuer = authority && new x509.X509Certificate(authority.certificate)
  const name = organization === undefined ? `CN=${commonName}` : `CN=${commonName}, O=${organization}`
  const extended = [
    ...(hosts.length > 0 ? [x509.ExtendedKeyUsage.serverAuth] : []),
    ...(isClient ? [x509.ExtendedKeyUsage.clientAuth] : []),
  ]
  const usages =
    x509.KeyUsageFlags.digitalSignature |
    (isAuthority ? x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign : 0)
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: `01${random.bytes(SERIAL_BYTES).toString('hex')}`,
    subject: name,
    issuer: issuer?.subject ?? name,
    notBefore: new Date(byTheMachine(now).getTime() - DAY_MILLISECONDS),
    notAfter: new Date(byTheMachine(now).getTime() + days * DAY_MILLISECONDS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: authority ? await signingKeyOf(authority) : keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      new x509.KeyUsagesExtension(usages, true),
      ...(extended.length > 0 ? [new x509.ExtendedKeyUsageExtension(extended)] : []),
      ...(hosts.length > 0
        ? [
            new x509.SubjectAlternativeNameExtension(
              hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
            ),
          ]
        : []),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...(issuer ? [await x509.AuthorityKeyIdentifierExtension.create(issuer)] : []),
    ],
  })
  const key = createPrivateKey({
    key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)),
    format: 'der',
    type: 'pkcs8',
  })
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const signingKeyOf = ({ key }: Certificate): Promise<webcrypto.CryptoKey> =>
  webcrypto.subtle.importKey(
    'pkcs8',
    createPrivateKey(key).export({ type: 'pkcs8', format: 'der' }),
    ALGORITHM,
    false,
    ['sign'],
  )
