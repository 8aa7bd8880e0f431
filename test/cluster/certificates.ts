/** A throw-away certificate authority for the control plane that tests start. The product's own certificates are made
 *  elsewhere. */

import 'reflect-metadata'
import { generateKeyPairSync, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

/** A certificate and its private key, both PEM. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

export interface Subject {
  readonly commonName: string
  readonly organization?: string
  /** DNS names and IP addresses a server answers as; none for a client. */
  readonly addresses?: readonly { readonly type: 'dns' | 'ip'; readonly value: string }[]
}

export interface Authority {
  /** PEM of the certificate that clients trust. */
  readonly certificate: string
  issue(subject: Subject): Promise<Pair>
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const VALID_MILLISECONDS = 7 * 24 * 3_600_000
const CLOCK_SKEW_MILLISECONDS = 60_000

const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
const exportKey = async (key: webcrypto.CryptoKey) =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')

function validity() {
  const now = new Date()
  return {
    notBefore: new Date(now.getTime() - CLOCK_SKEW_MILLISECONDS),
    notAfter: new Date(now.getTime() + VALID_MILLISECONDS),
  }
}

/** Makes an authority that exists in memory only. */
export async function newAuthority(commonName: string): Promise<Authority> {
  const keys = await newKeys()
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  })
  return {
    certificate: root.toString('pem'),
    async issue({ commonName: name, organization, addresses = [] }) {
      const own = await newKeys()
      const usage = addresses.length > 0 ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth
      const certificate = await x509.X509CertificateGenerator.create({
        subject: [...(organization ? [{ O: [organization] }] : []), { CN: [name] }],
        issuer: root.subject,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        ...validity(),
        extensions: [
          new x509.ExtendedKeyUsageExtension([usage]),
          ...(addresses.length > 0
            ? [new x509.SubjectAlternativeNameExtension(addresses.map(({ type, value }) => ({ type, value })))]
            : []),
        ],
      })
      return { certificate: certificate.toString('pem'), key: await exportKey(own.privateKey) }
    },
  }
}

/** The RSA pair that signs service account tokens; kube-apiserver takes the private key for both. */
export const newServiceAccountKey = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
