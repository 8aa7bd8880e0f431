/** The agent's own certificate. Nobody signs it: the agent tells its fingerprint in its NodeReport, and callers compare that. */
import 'reflect-metadata'
import { createHash, createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { X509CertificateGenerator } from '@peculiar/x509'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { writeDurably } from '../durable-file.ts'

export interface AgentCertificate {
  /** PEM. */
  readonly certificate: string
  readonly key: string
  /** SHA-256 of the certificate in lower-case hex. */
  readonly fingerprint: string
}

const FILE = 'agent.pem'
const DAY_MILLISECONDS = 86_400_000
const LIFETIME_DAYS = 3_650
const RENEW_BEFORE_DAYS = 365
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** The certificate of the folder; made when there is none that lasts another year. Key and certificate share a file, so that they match. */
export async function openCertificate(folder: string, clock: Clock, random: Random): Promise<AgentCertificate> {
  const path = join(folder, FILE)
  const kept = await readFile(path, 'utf8').catch(() => undefined)
  if (kept !== undefined) {
    const certificate = new X509Certificate(kept)
    if (Date.parse(certificate.validTo) - clock.now().getTime() > RENEW_BEFORE_DAYS * DAY_MILLISECONDS) return describe(kept)
  }
  const made = await makeCertificate(clock.now(), random)
  await writeDurably(path, made)
  return describe(made)
}

function describe(pem: string): AgentCertificate {
  const { raw } = new X509Certificate(pem)
  return { certificate: pem, key: pem, fingerprint: createHash('sha256').update(raw).digest('hex') }
}

async function makeCertificate(now: Date, random: Random): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: `01${random.bytes(12).toString('hex')}`, name: 'CN=svccloud-agent',
    notBefore: new Date(now.getTime() - DAY_MILLISECONDS), notAfter: new Date(now.getTime() + LIFETIME_DAYS * DAY_MILLISECONDS),
    signingAlgorithm: ALGORITHM, keys,
  }, webcrypto as unknown as Parameters<typeof X509CertificateGenerator.createSelfSigned>[1]) // Node's own, typed by the browser's names there
  const key = createPrivateKey({ key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)), format: 'der', type: 'pkcs8' })
  return `${String(key.export({ type: 'pkcs8', format: 'pem' }))}${certificate.toString('pem')}\n`
}
