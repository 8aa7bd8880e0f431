/** Certificates that customers upload: a chain and its private key. They are checked before they are stored, as
 *  strictly as by the proxy that will load them. Pure. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

/** Maximum of the chain and of the key, each. */
export const PEM_BYTES_MAXIMUM = 32_768
export const CHAIN_MAXIMUM = 10
const RSA_BITS = { least: 2_048, most: 8_192 } as const
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1']
export const DNS_NAMES_MAXIMUM = 100

export interface CheckedCertificate {
  /** The chain as PEM, the leaf first, without anything around it. */
  readonly certificate: string
  /** PKCS #8. */
  readonly privateKey: string
  /** The names of the leaf, wildcards included; at most a hundred are read. */
  readonly dnsNames: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
  /** SHA-256 of the leaf, in hexadecimal digits with colons. */
  readonly fingerprint: string
}

export interface CertificateFault {
  readonly field: 'certificate' | 'private_key'
  /** For people; reveals nothing of the key. */
  readonly detail: string
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----/g

/** Reads a chain and its key. Never throws: an error is returned as a fault. */
export function checkCertificate(
  input: { readonly certificate: string; readonly privateKey: string },
  now: Date,
): CheckedCertificate | CertificateFault {
  const chain = readChain(input.certificate)
  if ('detail' in chain) return chain
  const [leaf] = chain.certificates
  const fault = chainFault(chain.certificates, now)
  if (fault !== undefined) return { field: 'certificate', detail: fault }
  const key = readKey(input.privateKey)
  if ('detail' in key) return key
  if (leaf?.checkPrivateKey(key.key) !== true)
    return { field: 'private_key', detail: 'is not the key of the first certificate' }
  return {
    certificate: chain.certificates.map((one) => one.toString()).join(''),
    privateKey: String(key.key.export({ type: 'pkcs8', format: 'pem' })),
    dnsNames: dnsNamesOf(leaf),
    notBefore: new Date(leaf.validFrom),
    notAfter: new Date(leaf.validTo),
    fingerprint: leaf.fingerprint256,
  }
}

function readChain(pem: string): { readonly certificates: readonly X509Certificate[] } | CertificateFault {
  const fault = (detail: string): CertificateFault => ({ field: 'certificate', detail })
  if (pem.length > PEM_BYTES_MAXIMUM) return fault(`may have at most ${PEM_BYTES_MAXIMUM} characters`)
  const blocks = [...pem.matchAll(BLOCK)]
  if (blocks.length === 0 || blocks.some(([, type]) => type !== 'CERTIFICATE'))
    return fault('must be certificates in PEM, the one of the server first')
  if (blocks.length > CHAIN_MAXIMUM) return fault(`may have at most ${CHAIN_MAXIMUM} certificates`)
  try {
    return { certificates: blocks.map(([block]) => new X509Certificate(block)) }
  } catch {
    return fault('has a part that is no certificate')
  }
}

function readKey(pem: string): { readonly key: KeyObject } | CertificateFault {
  const fault = (detail: string): CertificateFault => ({ field: 'private_key', detail })
  if (pem.length > PEM_BYTES_MAXIMUM) return fault(`may have at most ${PEM_BYTES_MAXIMUM} characters`)
  // Keys of elliptic curves are often preceded by a block of parameters.
  const [block, ...more] = [...pem.matchAll(BLOCK)].filter(([, type = '']) => type.endsWith('PRIVATE KEY'))
  if (pem.includes('ENCRYPTED')) return fault('must not be encrypted')
  if (block === undefined || more.length > 0) return fault('must be one private key in PEM')
  try {
    const key = createPrivateKey({ key: block[0], format: 'pem' })
    const weakness = strengthFault(key)
    return weakness === undefined ? { key } : fault(weakness)
  } catch {
    return fault('is no private key that can be read')
  }
}

/** Why TLS cannot use the key; undefined when it can. */
function strengthFault({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  const { modulusLength = 0, namedCurve } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'rsa')
    return modulusLength < RSA_BITS.least || modulusLength > RSA_BITS.most
      ? `an RSA key must have ${RSA_BITS.least} to ${RSA_BITS.most} bits`
      : undefined
  if (asymmetricKeyType === 'ec')
    return CURVES.includes(namedCurve) ? undefined : 'its curve must be P-256, P-384 or P-521'
  return asymmetricKeyType === 'ed25519' ? undefined : 'its key must be RSA, ECDSA or Ed25519'
}

const WEAK_DIGEST = /md5|sha1-|sha1With|-with-sha1/i
const isSelfSigned = (one: X509Certificate): boolean => one.subject === one.issuer

/** Why the proxy would not accept the chain; undefined when it would. */
function chainFault(chain: readonly X509Certificate[], now: Date): string | undefined {
  const [leaf] = chain
  if (leaf !== undefined && new Date(leaf.validTo) <= now) return 'has expired'
  for (const one of chain) {
    const fault = strengthFault(one.publicKey)
    if (fault !== undefined) return fault
    if (!isSelfSigned(one) && WEAK_DIGEST.test(one.signatureAlgorithm ?? ''))
      return 'is signed with a digest that is no longer safe: SHA-256 or better is needed'
  }
  return orderFault(chain)
}

function orderFault(chain: readonly X509Certificate[]): string | undefined {
  const index = chain.findIndex((one, at) => {
    const issuer = chain[at + 1]
    return issuer !== undefined && !(one.checkIssued(issuer) && one.verify(issuer.publicKey))
  })
  return index < 0 ? undefined : `certificate ${index + 2} of the chain did not sign the one before it`
}

const dnsNamesOf = (leaf: X509Certificate): readonly string[] =>
  (leaf.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:'))
    .map((name) => name.slice('DNS:'.length))
    .filter((name) => /^[A-Za-z0-9*._-]{1,253}$/.test(name))
    .slice(0, DNS_NAMES_MAXIMUM)
