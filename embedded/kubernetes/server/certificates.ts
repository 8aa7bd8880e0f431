/** The server's own certificate authority and its certificate, made once and kept in the data folder. */
import 'reflect-metadata'
import { createPrivateKey, createPublicKey, webcrypto, X509Certificate as NodeCertificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { writePrivateFile } from './private-file.ts'

const DAY_MILLISECONDS = 86_400_000
const AUTHORITY_DAYS = 3_650
const SERVER_DAYS = 825
const RENEW_BEFORE_DAYS = 30
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const SERIAL_BYTES = 12

export interface ServerCertificates {
  /** PEM of the authority: what clients must trust. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

interface Pair {
  readonly certificate: string
  readonly key: string
}

/** Reads the certificates of the folder; makes what is missing, expires soon or lacks one of the hosts. */
export async function openCertificates(options: { readonly folder: string; readonly hosts: readonly string[]; readonly clock: Clock; readonly random: Random }): Promise<ServerCertificates> {
  const { folder, hosts, clock, random } = options
  x509.cryptoProvider.set(webcrypto)
  const now = clock.now()
  const authority = (await readPair(folder, 'ca')) ?? (await writePair(folder, 'ca', await makeAuthority(now, random)))
  const known = await readPair(folder, 'server')
  const server = known && isGood(known, authority, hosts, now) ? known : await writePair(folder, 'server', await makeServer(authority, hosts, now, random))
  return { authority: authority.certificate, certificate: server.certificate, key: server.key }
}

async function readPair(folder: string, name: string): Promise<Pair | undefined> {
  try {
    const [certificate, key] = await Promise.all([readFile(join(folder, `${name}.crt`), 'utf8'), readFile(join(folder, `${name}.key`), 'utf8')])
    // A pair that was half written when the process died is made anew.
    return new NodeCertificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { certificate, key } : undefined
  } catch {
    return undefined
  }
}

async function writePair(folder: string, name: string, pair: Pair): Promise<Pair> {
  await writePrivateFile(join(folder, `${name}.key`), pair.key)
  await writePrivateFile(join(folder, `${name}.crt`), pair.certificate)
  return pair
}

function isGood(server: Pair, authority: Pair, hosts: readonly string[], now: Date): boolean {
  const certificate = new NodeCertificate(server.certificate)
  const isCovered = hosts.every((host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined)
  const isSigned = certificate.verify(createPublicKey(authority.certificate))
  return isCovered && isSigned && Date.parse(certificate.validTo) - now.getTime() > RENEW_BEFORE_DAYS * DAY_MILLISECONDS
}

const serial = (random: Random): string => `01${random.bytes(SERIAL_BYTES).toString('hex')}`
const daysAfter = (now: Date, days: number): Date => new Date(now.getTime() + days * DAY_MILLISECONDS)

async function makeAuthority(now: Date, random: Random): Promise<Pair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(random),
    name: `CN=svccloud-kubernetes-ca-${random.bytes(4).toString('hex')}`,
    notBefore: daysAfter(now, -1),
    notAfter: daysAfter(now, AUTHORITY_DAYS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) }
}

async function makeServer(authority: Pair, hosts: readonly string[], now: Date, random: Random): Promise<Pair> {
  const issuer = new x509.X509Certificate(authority.certificate)
  const keyBytes = createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' })
  const signingKey = await webcrypto.subtle.importKey('pkcs8', keyBytes, ALGORITHM, false, ['sign'])
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(random),
    subject: 'CN=svccloud-kubernetes',
    issuer: issuer.subject,
    notBefore: daysAfter(now, -1),
    notAfter: daysAfter(now, SERVER_DAYS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }))),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) }
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  return createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' }).toString()
}
