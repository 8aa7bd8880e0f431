/** The server's own certificate authority and its certificate, made once and kept in the data folder. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Certificate, DAY_MILLISECONDS, makeCertificate } from '../../../kit/sys/certificate.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Random } from '../../../kit/sys/random.ts'

const AUTHORITY_DAYS = 3_650
const SERVER_DAYS = 825
const RENEW_BEFORE_DAYS = 30

export interface ServerCertificates extends Certificate {
  /** PEM of the authority: what clients must trust. */
  readonly authority: string
}

/** Reads the certificates of the folder; makes what is missing, expires soon or lacks one of the hosts. */
export async function openCertificates(options: {
  readonly folder: string
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
}): Promise<ServerCertificates> {
  const { folder, hosts, clock, random } = options
  const now = clock.now()
  const made = {
    commonName: `svccloud-kubernetes-ca-${random.bytes(4).toString('hex')}`,
    days: AUTHORITY_DAYS,
    isAuthority: true,
    now,
    random,
  }
  const authority = (await readPair(folder, 'ca')) ?? (await writePair(folder, 'ca', await makeCertificate(made)))
  const known = await readPair(folder, 'server')
  const server =
    known && isGood(known, authority, hosts, now)
      ? known
      : await writePair(
          folder,
          'server',
          await makeCertificate({
            commonName: 'svccloud-kubernetes',
            days: SERVER_DAYS,
            hosts,
            authority,
            now,
            random,
          }),
        )
  return { authority: authority.certificate, certificate: server.certificate, key: server.key }
}

async function readPair(folder: string, name: string): Promise<Certificate | undefined> {
  try {
    const [certificate, key] = await Promise.all([
      readFile(join(folder, `${name}.crt`), 'utf8'),
      readFile(join(folder, `${name}.key`), 'utf8'),
    ])
    // A pair that was half written when the process died is made anew.
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { certificate, key } : undefined
  } catch {
    return undefined
  }
}

async function writePair(folder: string, name: string, pair: Certificate): Promise<Certificate> {
  await writeDurably(join(folder, `${name}.key`), pair.key)
  await writeDurably(join(folder, `${name}.crt`), pair.certificate)
  return pair
}

function isGood(server: Certificate, authority: Certificate, hosts: readonly string[], now: Date): boolean {
  const certificate = new X509Certificate(server.certificate)
  const isCovered = hosts.every(
    (host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
  )
  const isSigned = certificate.verify(createPublicKey(authority.certificate))
  return isCovered && isSigned && Date.parse(certificate.validTo) - now.getTime() > RENEW_BEFORE_DAYS * DAY_MILLISECONDS
}
