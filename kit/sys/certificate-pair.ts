/** Certificates with their keys as two files of a folder, and when one must be created again. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Certificate, DAY_MILLISECONDS } from './certificate.ts'
import { writeDurably } from './durable-file.ts'

/** From `NAME.crt` and `NAME.key`; undefined when they do not exist, or do not belong together. */
export async function readPair(folder: string, name: string): Promise<Certificate | undefined> {
  try {
    const [certificate, key] = await Promise.all([
      readFile(join(folder, `${name}.crt`), 'utf8'),
      readFile(join(folder, `${name}.key`), 'utf8'),
    ])
    // A pair that was half written when the process died is created again.
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { certificate, key } : undefined
  } catch {
    return undefined
  }
}

/** Returns the pair, once it is on the disk. */
export async function writePair(folder: string, name: string, pair: Certificate): Promise<Certificate> {
  await writeDurably(join(folder, `${name}.key`), pair.key)
  await writeDurably(join(folder, `${name}.crt`), pair.certificate)
  return pair
}

interface Requirements {
  readonly authority: Certificate
  readonly hosts: readonly string[]
  readonly now: Date
  /** Its remaining validity exceeds that. */
  readonly days: number
}

/** Whether the authority has signed it, for all of these hosts and for long enough. */
export function isGood(leaf: Certificate, { authority, hosts, now, days }: Requirements): boolean {
  const certificate = new X509Certificate(leaf.certificate)
  const isCovered = hosts.every(
    (host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
  )
  const isSigned = certificate.verify(createPublicKey(authority.certificate))
  return isCovered && isSigned && Date.parse(certificate.validTo) - now.getTime() > days * DAY_MILLISECONDS
}
